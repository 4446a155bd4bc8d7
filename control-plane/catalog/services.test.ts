import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { ConfigError } from '../process/config-error.ts'
import { loadServices } from './services.ts'

const folder = mkdtempSync(join(tmpdir(), 'services-'))
afterAll(() => rmSync(folder, { recursive: true }))
let files = 0
function fileOf(content: unknown): string {
  const path = join(folder, `${files++}.json`)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

const oauth = {
  issuer: 'https://id.example.com',
  authorizeUrl: 'https://id.example.com/auth',
  tokenUrl: 'https://id.example.com/token',
  clientId: 'svc',
  clientSecret: 'hush-hush',
}
const plain = { id: 'own', label: 'Own', authKind: 'none', surfaces: ['mcp'], mcp: { url: 'https://mcp.example.com' } }

test('at least twelve services of all four kinds come with the server', () => {
  const services = loadServices(null).list()
  expect(services.length).toBeGreaterThanOrEqual(12)
  expect(new Set(services.map(({ authKind }) => authKind))).toEqual(new Set(['none', 'api_key', 'oauth', 'mcp_oauth']))
  for (const { mcp, surfaces, fields = [], oauth: provider } of services) {
    expect(surfaces.includes('mcp')).toBe(mcp !== undefined)
    if (surfaces.includes('native'))
      expect([...fields.map(({ env }) => env), provider?.env].some((env) => env !== undefined)).toBe(true)
  }
})

test('the file adds services, replaces them, and gives clients to those that are there', () => {
  const clients = [{ service: 'gitlab', clientId: 'mine', clientSecret: 'hush' }]
  const catalog = loadServices(fileOf({ services: [plain, { ...plain, id: 'linear', label: 'Ours' }], clients }))
  expect(catalog.find('own')).toEqual(plain)
  expect(catalog.find('linear')).toMatchObject({ label: 'Ours', authKind: 'none' })
  expect(catalog.find('gitlab')?.oauth).toMatchObject({ issuer: 'https://gitlab.com', clientId: 'mine' })
  expect(catalog.find('nothing')).toBeNull()
})

describe('a file that cannot be used says where, and repeats no value of it', () => {
  const key = { id: 'k', label: 'K', authKind: 'api_key', surfaces: ['mcp'] }
  const field = { name: 'apiKey', label: 'Key', required: true }
  test.each<[string, unknown]>([
    ['services[0].colour: unknown key', { services: [{ ...plain, colour: 'red' }] }],
    ['extra: unknown key', { services: [], extra: 1 }],
    [
      'services[0].oauth.secret: unknown key',
      { services: [{ ...plain, authKind: 'oauth', oauth: { ...oauth, secret: 'hush-hush' } }] },
    ],
    [
      'services[0].oauth.tokenUrl',
      { services: [{ ...plain, authKind: 'oauth', oauth: { ...oauth, tokenUrl: 'ftp://hush-hush' } }] },
    ],
    ['services[0].oauth: a service of `oauth` needs it', { services: [{ ...plain, authKind: 'oauth' }] }],
    [
      'services[0].mcp: a service of `mcp_oauth` needs it',
      { services: [{ ...plain, authKind: 'mcp_oauth', mcp: undefined }] },
    ],
    ['services[0].fields: a service of `api_key`', { services: [key] }],
    ['services[0].fields[0].pattern', { services: [{ ...key, fields: [{ ...field, pattern: '(' }] }] }],
    ['services[0].fields[0].env', { services: [{ ...key, fields: [{ ...field, env: 'LD_PRELOAD' }] }] }],
    ['services[0].fields: two have the same name', { services: [{ ...key, fields: [field, field] }] }],
    [
      'services[0].probe.headers.authorization: there is no field `other`',
      {
        services: [
          { ...key, fields: [field], probe: { url: 'https://x.example', headers: { authorization: '{other}' } } },
        ],
      },
    ],
    ['services[1].id: another service of the file', { services: [plain, plain] }],
    ['clients[0].issuer: a client for MCP servers needs it', { clients: [{ service: 'linear', clientId: 'x' }] }],
    ['clients[0].issuer: a client for MCP servers needs it', { clients: [{ clientId: 'x' }] }],
    [
      'clients[0].issuer: the service has its issuer',
      { clients: [{ service: 'gitlab', issuer: 'https://id.example', clientId: 'x' }] },
    ],
    [
      'clients[0].service: names no service',
      { clients: [{ service: 'deepwiki', clientId: 'x', clientSecret: 'hush-hush' }] },
    ],
    ['It is not JSON.', '{ "clientSecret": hush-hush }'],
  ])('%s', (said, content) => {
    const load = () => loadServices(fileOf(content))
    expect(load).toThrow(ConfigError)
    expect(load).toThrow(said)
    expect(load).not.toThrow('hush-hush')
  })

  test('that is not there', () => {
    expect(() => loadServices('/nowhere.json')).toThrow('SVC_SERVICES_FILE: /nowhere.json cannot be used')
  })
})
