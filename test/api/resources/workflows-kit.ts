import { listWaitingRuns } from '../../../control-plane/resources/workflows/call-store.ts'
import { listUnreplayed } from '../../../control-plane/resources/workflows/run-store.ts'
import type { FakeDevice } from '../../kit/fake-device.ts'
import type { TestServer } from '../../kit/server.ts'

// A program of this body, and its workflow.

export const programOf = (body: string, meta: Record<string, unknown> = {}): string =>
  `export const meta = ${JSON.stringify({ name: 'flow', title: 'Flow', ...meta })}\n${body}`

let made = 0

/** Stores a workflow under a name of its own, and returns that. */
export async function makeWorkflow(
  server: TestServer,
  body: string,
  { meta = {}, token }: { meta?: Record<string, unknown>; token?: string } = {},
): Promise<string> {
  const name = `flow_${made++}`
  const source = programOf(body, { name, ...meta })
  await server.ok('/workflows/records', { body: { source }, ...(token === undefined ? {} : { token }) })
  return name
}

/** Starts it and returns the id of the run. */
export async function startFlow(
  server: TestServer,
  workflow: string,
  body: Record<string, unknown> = {},
  token?: string,
): Promise<string> {
  const call = { body: { workflow, ...body }, ...(token === undefined ? {} : { token }) }
  return (await server.ok('/workflows/runs', call)).id as string
}

export const readFlow = (server: TestServer, id: string) => server.ok(`/workflows/runs/${id}`)

/** Has everything done that is to be done for workflows now. */
export async function settled({ plane, database, world }: TestServer): Promise<void> {
  let looks = 0
  for (let round = 0; round < 40 && looks < 2; round++) {
    await plane.advancer.idle()
    const waiting = await listWaitingRuns(database.root, { endedBefore: world.now(), limit: 100 })
    const all = [...waiting, ...(await listUnreplayed(database.root, 100))]
    // What was handed over while this looked may not be finished: the second look is after that.
    looks = all.length === 0 ? looks + 1 : 0
    for (const run of all) plane.advancer.advanceSoon(run)
  }
}

/** Takes the next run of the device, and ends it with this text. */
export async function answerNext(device: FakeDevice, text: string | ((prompt: string) => string)): Promise<string> {
  const run = await device.take()
  const said = typeof text === 'string' ? text : text(run.spec.prompt)
  await run.events({ kind: 'result', data: { text: said, isError: false } })
  await run.end('completed')
  return run.spec.prompt
}
