import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { HttpOrder } from '../parts/http-lines.ts'
import { jsonLine } from '../parts/json-lines.ts'

/** The ids of our requests. What a person adds has ids from `firstInput` on. */
export const opencodeOrderIds = { session: 1, prompt: 2, abort: 3, permission: 4, firstInput: 10 } as const

const order = (order: HttpOrder): string => jsonLine(order)

/** A line for svc's plugin. */
export const stdinLine = (line: object): string => jsonLine({ stdin: jsonLine(line) })

/** An id of opencode's, which no other text may take the place of in a path. Half of a pair of surrogates could not be written. */
const inPath = (id: string): string => encodeURIComponent(id.toWellFormed())
const pathOf = (sessionId: string): string => `/session/${inPath(sessionId)}`

/** A second fence behind the plugin: whatever it did not see is asked by opencode, and refused. */
const everythingAsked = [
  { permission: '*', pattern: '*', action: 'ask' },
  // It asks when the model repeats itself; the limits of a run end that.
  { permission: 'doom_loop', pattern: '*', action: 'allow' },
  ...['question', 'plan_enter', 'plan_exit'].map((permission) => ({ permission, pattern: '*', action: 'deny' })),
]

const titleChars = 80
/** The newest of a folder, among which the one to be gone on with is looked for. */
const maxSessions = 5_000

export function openSession({ resumeSessionId, prompt }: RunSpec): string {
  // Among those of this folder: to ask for one of another folder would begin to work there.
  if (resumeSessionId !== null)
    return order({ id: opencodeOrderIds.session, method: 'GET', path: `/session?limit=${maxSessions}` })
  // With a title of its own, opencode asks no model for one.
  const title =
    prompt
      .split('\n')
      .find((line) => line.trim() !== '')
      ?.trim()
      .slice(0, titleChars) ?? 'svc'
  return order({
    id: opencodeOrderIds.session,
    method: 'POST',
    path: '/session',
    body: { title, permission: everythingAsked },
  })
}

export function sendPrompt(
  { agentMd, model, reasoningEffort }: RunSpec,
  { id, sessionId, text }: { id: number; sessionId: string; text: string },
): string {
  const slash = model?.indexOf('/') ?? -1
  const body = {
    parts: [{ type: 'text', text }],
    ...(model !== null &&
      slash > 0 && { model: { providerID: model.slice(0, slash), modelID: model.slice(slash + 1) } }),
    ...(reasoningEffort !== null && { variant: reasoningEffort }),
    ...(agentMd.trim() !== '' && { system: agentMd }),
  }
  return order({ id, method: 'POST', path: `${pathOf(sessionId)}/prompt_async`, body })
}

export const abortSession = (sessionId: string): string =>
  order({ id: opencodeOrderIds.abort, method: 'POST', path: `${pathOf(sessionId)}/abort` })

/** Never `always`: that would hold for later calls, too. */
export function replyPermission(permissionId: string, isAllowed: boolean): string {
  const body = isAllowed ? { reply: 'once' } : { reply: 'reject', message: 'svc was not asked about this call.' }
  return order({
    id: opencodeOrderIds.permission,
    method: 'POST',
    path: `/permission/${inPath(permissionId)}/reply`,
    body,
  })
}
