import { expect, test } from 'vitest'
import { loadServices } from '../../catalog/services.ts'
import { hostsOf } from './in-cloud.ts'

test('the variables of a service are for the hosts that it names, else for those of its probe and its tools over TLS', () => {
  for (const [service, hosts] of [
    [{ hosts: ['api.example.com:443', 'b.example.com:8443'] }, ['api.example.com', 'b.example.com:8443']],
    [{ hosts: [], probe: { url: 'https://a.example.com/me' } }, []],
    [
      { probe: { url: 'https://A.example.com:443/me' }, mcp: { url: 'https://mcp.example.com:8443/' } },
      ['a.example.com', 'mcp.example.com:8443'],
    ],
    [{ probe: { url: 'http://127.0.0.1:80/me' } }, []],
    [{}, []],
  ] as const)
    expect([...hostsOf(service as Parameters<typeof hostsOf>[0])]).toEqual(hosts)
  expect([...hostsOf(loadServices(null).find('github')!)]).toEqual(['api.github.com', 'uploads.github.com'])
})
