import type { Reply } from '../../../kit/server.ts'
import { makeConversation, makeDm, say } from '../../../kit/talk.ts'
import type { Stage } from '../../contract/stage.ts'
import { postKeyed } from './recipe.ts'
import type { Place } from './resource-facts.ts'

// Conversations and messages as facts of several resources make them.

export const channel = async (
  { server }: Stage,
  participants: readonly string[] = [],
  token?: string,
): Promise<string> => (await makeConversation(server, { participants }, token)).id as string

export const dm = async (stage: Stage): Promise<string> =>
  (await makeDm(stage.server, await stage.agent())).id as string

export async function aMessage(stage: Stage): Promise<string> {
  return (await say(stage.server, await channel(stage), 'Hello.')).id as string
}

/** Without this a turn is answered by a stream that lasts as long as the run. */
export const atOnce = { accept: 'application/json' }
export const send = (stage: Stage, id: string, body: Record<string, unknown> = { body: 'Hello.' }): Promise<Reply> =>
  postKeyed(stage, `/conversations/${id}/send`, body, { headers: atOnce })

/** A channel whose agent has begun a turn; no device takes it, so it goes on. */
export async function busyChannel(stage: Stage): Promise<string> {
  const id = await channel(stage, [await stage.agent()])
  const { status } = await send(stage, id)
  if (status !== 200) throw new Error(`no turn: ${status}`)
  return id
}

/** Below a new conversation. */
export const atChannel = async (stage: Stage, path: string, body?: unknown): Promise<Place> => ({
  path: `/conversations/${await channel(stage)}${path}`,
  body,
})

export const unknownConversation = 'cnv_0000000000000000'
export const unknownMessage = 'msg_0000000000000000'
export const text = { body: 'The build is green.' }

/** Ways to say something that is not to be said. */
export const badTexts: readonly [outcome: string, text: string][] = [
  ['400 empty_message', ' '],
  ['400 secret_in_message', `my key is ghp_${'a1B2c3D4e5F6'.repeat(3)}`],
]
