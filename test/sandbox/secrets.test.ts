import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { secondLoopbackCertificate } from '../kit/hostile-server.ts'
import { waitFor } from '../kit/programs.ts'
import { cloudServer, endedRun, hasNoEngine } from '../kit/sandboxes.ts'

/** Not 127.0.0.1, which programs in a sandbox ask without a proxy. */
const host = '127.0.0.2'

/** A host with TLS that notes with which tokens it is asked, and repeats them where it is asked to. */
async function startService() {
  const certificate = secondLoopbackCertificate()
  const before = getCACertificates('default')
  setDefaultCACertificates([...before, certificate.cert])
  onTestFinished(() => setDefaultCACertificates(before))
  const tokens: (string | undefined)[] = []
  const service = createServer(certificate, (request, response) => {
    const { authorization } = request.headers
    tokens.push(authorization)
    response.end(request.url === '/echo' ? `you are ${authorization}` : 'hello from the service')
  })
  await new Promise<void>((resolve) => service.listen(0, host, resolve))
  onTestFinished(() => {
    service.closeAllConnections()
    service.close()
  })
  return { tokens, place: `${host}:${(service.address() as AddressInfo).port}` }
}

interface Look {
  found: string[][]
  files: number
}

test.skipIf(hasNoEngine)('a run uses a token that is nowhere in its sandbox', async () => {
  const { tokens, place } = await startService()
  const value = `real-${crypto.randomUUID()}`
  const server = await cloudServer({ settings: { SVC_ALLOW_HOSTS: host } })
  const program = readFileSync(join(import.meta.dirname, 'look-for-key.mjs')).toString('base64')
  const ask = (path: string) =>
    `node -e "fetch('http://${place}${path}',{headers:{authorization:'Bearer '+process.env.EXAMPLE_TOKEN}}).then((r)=>r.text()).then((text)=>console.log('said',text),()=>console.log('cut off'))"`
  const command = [
    `echo ${program} | base64 -d >/tmp/look.mjs`,
    ask('/v1'),
    ask('/echo'),
    `node /tmp/look.mjs '${value.split('').toReversed().join('')}' >/tmp/value.json`,
    `node /tmp/look.mjs "$(node -p 'process.env.EXAMPLE_TOKEN.split("").reverse().join("")')" >/tmp/placeholder.json`,
    `node -e "const r=(n)=>JSON.parse(require('fs').readFileSync('/tmp/'+n+'.json'));console.log(JSON.stringify({value:r('value'),placeholder:r('placeholder')}))" >/tmp/both.json`,
    'svc run output --file /tmp/both.json',
  ].join(' && ')
  const { id: agentId } = await server.createAgent({
    environment: 'cloud',
    harness: 'command',
    toolPermissionMode: 'full',
    command,
  })
  const body = { name: 'example', envVarName: 'EXAMPLE_TOKEN', value, agentId, brokerHosts: [place] }
  await server.ok('/secrets', { body })
  const { runPublicId: runId } = await server.ok(`/agents/${agentId}/runs`, { body: { prompt: 'Go' } })
  expect(await endedRun(server, runId)).toMatchObject({ status: 'succeeded' })
  expect(tokens).toEqual([`Bearer ${value}`, `Bearer ${value}`])
  const output = (await server.ok(`/runs/${runId}/output`)).data as Record<'value' | 'placeholder', Look>
  expect(output.value.found).toEqual([[]])
  expect(output.value.files).toBeGreaterThan(20)
  // The same look finds what is there.
  expect(output.placeholder.found[0]!.join(' ')).toMatch(/environ of \d+/)
  const events = JSON.stringify(await server.ok(`/runs/${runId}/events?limit=200`))
  expect(events).toContain('said hello from the service')
  expect(events).toContain('cut off')
  expect(events).not.toContain(value)
  expect((await server.ok(`/runs/${runId}/manifest`)).envKeys).toContain('EXAMPLE_TOKEN')
  await waitFor(async () => {
    const { hosts } = (await server.ok(`/runs/${runId}/network`)) as { hosts: Record<string, unknown>[] }
    const ofHost = hosts.filter((each) => each['host'] === host)
    return ofHost.some(({ decision }) => decision === 'allowed') && ofHost.some(({ decision }) => decision === 'failed')
  }, `what ${runId} asked for`)
})
