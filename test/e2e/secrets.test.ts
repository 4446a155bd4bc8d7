import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkInvariants, noSecrets } from '../kit/invariants.ts'
import { processesNaming } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { scenario, type Scenario } from '../kit/system-scenario.ts'

// Invariant I6 and row 39: what a run may know stays in it, and what the device knows does not get there.

let system: TestSystem
beforeAll(async () => {
  system = await TestSystem.start({ device: { isWalled: true } })
})
afterAll(() => system?.stop())

/** Forms in which a program may print a token. */
const printing = [
  'run=printf "%s\\n" "$SVC_TOKEN"',
  'run=printf %s "$SVC_TOKEN" | base64 -w0',
  'run=printf "x%s" "$SVC_TOKEN" | base64 -w0',
  'run=printf "xy%s" "$SVC_TOKEN" | base64 -w0',
  'run=printf %s "$SVC_TOKEN" | cut -c1-20; printf %s "$SVC_TOKEN" | cut -c21-',
  'run=echo "{\\"token\\":\\"$SVC_TOKEN\\"}"; echo "https://example.com/?t=$SVC_TOKEN"',
  'run=printf "%s" "$SVC_TOKEN" > in-a-file.txt',
]

async function tokenOf(run: Scenario): Promise<string> {
  const file = join(run.gates, 'token')
  await run.reached('token-is-there')
  return readFileSync(file, 'utf8')
}

test('the token of a run, printed in many forms, stands nowhere; the harness gets no token of the device and none of a person', async () => {
  const run = await scenario(system, {
    steps: [
      'run=printf %s "$SVC_TOKEN" > GATES/token',
      'touch=GATES/token-is-there',
      ...printing,
      'env',
      'touch=GATES/up',
      'await=GATES/end',
    ],
  })
  const runId = await run.start()
  const token = await tokenOf(run)
  expect(token.split('.')).toHaveLength(3)
  await run.reached('up')
  const { identity, stateDir } = run.device
  const foreign = [identity.token, system.server.token]
  for (const { pid, command } of processesNaming(system.root)) {
    const said = `${command}\n${environmentOf(pid)}`
    for (const secret of foreign) expect(said.includes(secret), command).toBe(false)
    // The run's own token is in the environment of its tree alone, and in nobody's arguments.
    expect(command).not.toContain(token)
    if (!said.includes(`SVC_RUN_ID=${runId}`)) expect(said.includes(token), command).toBe(false)
  }
  // Its token is worth nothing at the device's routes, and not a person's at a person's.
  const call = (path: string) => fetch(`${system.server.url}${path}`, { headers: { authorization: `Bearer ${token}` } })
  expect((await call('/api/device/config')).status).toBe(401)
  expect((await call('/api/v1/devices')).status).toBe(403)
  expect((await call('/api/v1/runs/current')).status).toBe(200)
  run.open('end')
  const { output, events } = await checkInvariants(system, run, runId, { exitReason: 'completed', hasChangeSet: false })
  const changeSet = await run.api.raw('GET', `/runs/${runId}/change-set`)
  const forms = [token, encodeURIComponent(token), ...[0, 1, 2].map((shift) => base64Core(token, shift))]
  const told = [
    output.toString(),
    JSON.stringify(events),
    JSON.stringify(changeSet),
    JSON.stringify(await run.api.run(runId)),
  ]
  for (const form of forms)
    for (const text of told) expect(text.includes(form), `the form ${form.slice(0, 12)}...`).toBe(false)
  expect(output.toString()).toContain('[redacted:SVC_TOKEN]')
  noSecrets(system, forms)
  for (const secret of foreign) expect(output.toString()).not.toContain(secret)
  for (const name of ['SVC_STATE_DIR', 'SVC_SPOOL', 'SVC_DATA_DIR']) expect(output.toString()).not.toContain(`${name}=`)
  expect((await call('/api/v1/runs/current')).status, 'dead with its run').toBe(401)
  // The run host that stands by for the next run has an empty folder, and may be rehearsing in others, which hold nothing of a run.
  const foldersIn = (folder: string) =>
    existsSync(join(stateDir, folder))
      ? readdirSync(join(stateDir, folder)).filter((name) => !name.startsWith('warm_'))
      : []
  const left = [
    ...foldersIn('runs'),
    ...foldersIn('own').flatMap((hostId) => readdirSync(join(stateDir, 'own', hostId))),
  ]
  expect(left).toEqual([])
})

/** Returns what stands of `value` in base64 whatever surrounds it, when it begins `shift` bytes after a boundary. */
function base64Core(value: string, shift: number): string {
  const whole = Buffer.from('x'.repeat(shift) + value).toString('base64')
  return whole.slice(shift === 0 ? 0 : 4, -8)
}

function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8')
  } catch {
    return ''
  }
}
