import { writeStateOf } from '../../../../control-plane/db/transaction.ts'
import { halfRequest } from '../../../kit/half-request.ts'
import type { Reply } from '../../../kit/server.ts'
import type { Stage } from '../../contract/stage.ts'
import { on } from './recipe.ts'
import type { CodeRecipe, Recipe } from './resource-facts.ts'

export const anAgent: Recipe = async (stage) => ({ params: { agentId: await stage.agent() } })

export const anAgentWith =
  (body: unknown): Recipe =>
  async (stage) => ({ ...(await anAgent(stage)), body })

interface Change {
  path: string
  method: string
  body: unknown
}
/** A change by an agent whose token is accepted, and whose run has ended before the request's body is there. */
export function lateChange(route: string, changeOf: (ids: { self: string; other: string }) => Change): CodeRecipe {
  return on(route, '403 platform_change_requires_run', async (stage: Stage): Promise<Reply> => {
    const { agentId, runId, token } = await stage.caller()
    const { path, ...request } = changeOf({ self: agentId, other: await stage.agent() })
    return halfRequest(stage.server, path, { ...request, token, between: () => stage.endRun(runId) })
  })
}

/** Sends a name with which the database undoes each attempt to write it, as if another write got in between each time. */
export async function undoneEachTime(
  stage: Stage,
  { code, send }: { code: '23505' | '40001'; send: (name: string) => Promise<Reply> },
): Promise<Reply> {
  const { root } = stage.server.database
  const writes = writeStateOf(root)
  const { world } = writes
  const name = `Undone ${crypto.randomUUID()}`
  await root.raw(`create function undo() returns trigger language plpgsql as
    $$ begin raise exception 'another write got in between' using errcode = '${code}'; end $$`)
  await root.raw(`create trigger undo before insert or update on agents for each row
    when (new.name = '${name}') execute function undo()`)
  // Chance says how long it waits before it tries again: not at all.
  writes.world = { ...world, random: () => 0 }
  try {
    return await send(name)
  } finally {
    writes.world = world
    await root.raw('drop function undo() cascade')
  }
}
