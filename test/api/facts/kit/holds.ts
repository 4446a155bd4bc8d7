import type { Reply } from '../../../kit/server.ts'
import type { Stage } from '../../contract/stage.ts'
import { postKeyed } from './recipe.ts'
import type { Keeper, Recipe } from './resource-facts.ts'

// Approvals and questions as facts of both make them.

/** As an agent of the owner's, in a run that ends by it. */
export async function asked(stage: Stage, path: string, body: Record<string, unknown> = {}): Promise<Reply> {
  const { token } = await stage.caller()
  return postKeyed(stage, path, { prompt: 'Which?', ...body }, { token })
}

export async function idOf(kind: 'approval' | 'question', asking: Promise<Reply>): Promise<string> {
  const { status, body } = await asking
  if (status !== 201) throw new Error(`no ${kind}: ${status} ${JSON.stringify(body)}`)
  return body[kind].id as string
}
export const asker: Recipe = async (stage) => ({
  token: (await stage.caller()).token,
  body: { prompt: 'Which?' },
  endsCaller: true,
})

/** By a run that a device is ending for another reason. */
export async function askedTooLate(stage: Stage, path: string): Promise<Reply> {
  const { runId, token } = await stage.caller()
  const cancelled = { cancel_exit_reason: 'interrupted', cancel_requested_at: stage.server.world.now() }
  await stage.server.database.root('runs').where({ id: runId }).update(cancelled)
  return postKeyed(stage, path, { prompt: 'Which?' }, { token })
}

/** Asked by a run of the keeper's agent, which ends by it. */
export async function askedOf(
  { server, person, agentId }: Keeper,
  path: string,
  body: Record<string, unknown>,
): Promise<Reply> {
  const token = await server.runToken(await server.startRun(agentId, {}, person.token))
  return postKeyed({ server }, path, body, { token })
}
