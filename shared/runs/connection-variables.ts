import { z } from 'zod'
import { mcpConnectionId } from './mcp-servers.ts'

/**
 * Variables of a run that hold what a connection signs in with. The spec of a run names them; the device asks for their values when
 * it starts the run.
 */
export const connectionVariables = z.object({
  connectionId: mcpConnectionId,
  names: z
    .array(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,99}$/))
    .min(1)
    .max(50),
})
export type ConnectionVariables = z.infer<typeof connectionVariables>

/** The connections of one run that give it variables. */
export const mostWithVariables = 50

const reasons = {
  secret: 'the agent has a secret of this name',
  harness_key: 'its agent program would sign in with it; grant the agent a secret for that',
  sandbox: 'no secret enters a sandbox',
  no_hosts: 'no secret enters a sandbox, and the catalog names no `hosts` for which its broker could add it',
  taken: 'another connection gives it',
  too_many: `a run takes those of ${mostWithVariables} connections`,
} as const
export type VariableLeftOutReason = keyof typeof reasons
export const variableLeftOutReasons = Object.keys(reasons) as [VariableLeftOutReason, ...VariableLeftOutReason[]]
/** Says the reason in words for people. */
export const sayVariableLeftOut = (reason: VariableLeftOutReason): string => reasons[reason]

/** The names of all of a spec. */
export const connectionVariablesOf = (spec: { connectionVariables?: ConnectionVariables[] | null | undefined }) =>
  (spec.connectionVariables ?? []).flatMap(({ names }) => names)

export interface VariableLeftOut {
  name: string
  reason: VariableLeftOutReason
}
