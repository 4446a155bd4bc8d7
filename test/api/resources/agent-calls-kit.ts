import { expect } from 'vitest'
import { FakeDevice } from '../../kit/fake-device.ts'
import type { Person, Reply, TestServer } from '../../kit/server.ts'

export interface AgentScene {
  server: TestServer
  /** Says whose agents ask, and who answers where nobody else is named. */
  member: Person
}

/** Returns what tests of approvals, questions and stored writes do over and over, on the server that the file has when they do it. */
export function agentCalls(scene: () => AgentScene) {
  const agentCaller = (
    body: Record<string, unknown> = {},
    { owner = scene().member, run = {} }: { owner?: Person; run?: Record<string, unknown> } = {},
  ) => scene().server.agentCaller(body, { token: owner.token, run })

  const post = (path: string, body: unknown, token: string | null = scene().member.token): Promise<Reply> =>
    scene().server.call(path, { body, token, headers: { 'Idempotency-Key': crypto.randomUUID() } })

  /** A run that a device executes: of an agent and on a device of a person of their own, so that nothing else is offered. */
  async function working() {
    const { server } = scene()
    const person = await server.addPerson('member')
    const device = await FakeDevice.connect(server, { token: person.token })
    const { agent } = await agentCaller({}, { owner: person })
    const work = await device.take()
    return { agent, person, device, work, runId: work.runId }
  }

  /** The run that the answer has led to. */
  async function wokenRun(agentId: string): Promise<string> {
    const runs = async () => (await scene().server.ok(`/runs?agent=${agentId}&triggerSource=approval_resolved`)).data
    await expect.poll(async () => (await runs()).length, { interval: 5 }).toBe(1)
    return (await runs())[0].id as string
  }

  return { agentCaller, post, working, wokenRun }
}
