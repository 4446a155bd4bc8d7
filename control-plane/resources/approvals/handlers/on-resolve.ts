import { fail } from '../../../../shared/api/errors.ts'
import type { ApprovalScope, ApprovalTrigger } from '../../../../shared/api/approval-words.ts'
import type { PersonCaller } from '../../../http/callers.ts'
import type { ImplementedRoute } from '../../../http/implement.ts'
import { hashAgentMd } from '../../agents/agent-md.ts'
import { findAgent, type AgentRow } from '../../agents/store.ts'
import { storeAgent } from '../../agents/steps/store-agent.ts'
import { approveChange, dropChange, type ApprovingRequest } from '../../platform-changes/steps/replay.ts'
import { allowRulesOf, withoutRules, withRules } from '../rules.ts'
import type { ApprovalRow } from '../store.ts'

/**
 * What else happens when an approval is resolved, by its trigger, in the same transaction. A refusal (`fail`) leaves the
 * approval open. A trigger without an entry has no effect of its own: its run goes on, and that is all.
 */
export interface ApprovalEffect {
  onApprove?(resolved: ResolvedApproval): Promise<void>
  onReject?(resolved: ResolvedApproval): Promise<void>
}

export interface ResolvedApproval {
  approval: ApprovalRow
  person: PersonCaller
  reason: string | null
  /** Of an approved `tool_permission`. */
  scope: ApprovalScope | null
  request: ApprovingRequest
  /** Every route of the API with its handler. */
  routes: readonly ImplementedRoute[]
}

export const approvalEffects: Readonly<Partial<Record<ApprovalTrigger, ApprovalEffect>>> = {
  tool_permission: { onApprove: allowFromNowOn },
  instruction_publish: { onApprove: publishInstructions },
  platform_change: { onApprove: replay, onReject: drop },
}

/** `always`: the call is allowed by a rule from now on, written as any change of the agent's settings. */
async function allowFromNowOn({ approval, person, scope, request }: ResolvedApproval): Promise<void> {
  if (scope !== 'always' || approval.agentId === null) return
  const before = await findAgent(request.db, approval.agentId)
  if (before === null || before.deletedAt !== null) return
  const rules = allowRulesOf(approval.gatedThing)
  if (rules === null)
    return fail('validation_error', {
      param: 'appliedScope',
      message: 'No rule says just this call. Approve it once, or write a rule into the permissions of the agent.',
    })
  const allow = withRules(before.tools.allow, rules)
  if (allow.length > 500) fail('validation_error', { param: 'appliedScope', message: 'The agent has 500 rules.' })
  const description = `Allowed ${approval.gatedThing.name} by approving ${approval.id}.`
  const tools = { ...before.tools, allow, ask: withoutRules(before.tools.ask, rules) }
  await write(request, { before, after: { ...before, tools }, caller: person, description })
}

/** The text is written when it replaces the one that the agent had before its eyes. */
async function publishInstructions({ approval, person, request }: ResolvedApproval): Promise<void> {
  const { instructions } = approval.gatedThing
  if (instructions === undefined) return
  const { agentMd, agentMdHash } = instructions
  const before = await findAgent(request.db, instructions.agentId)
  if (before === null || before.deletedAt !== null)
    return fail('agent_md_stale', { message: 'The agent is deleted.', param: 'agentId' })
  if (before.agentMdHash !== agentMdHash)
    fail('agent_md_stale', {
      message: 'AGENT.md was changed since this was asked for. Reject it, and let it be asked anew.',
    })
  const caller = approval.agentId === null ? person : { ...person, onBehalfOf: approval.agentId }
  const after = { ...before, agentMd, agentMdHash: hashAgentMd(agentMd) }
  await write(request, { before, after, caller, description: `Published by approving ${approval.id}.` })
}

async function write(
  { db, world }: ApprovingRequest,
  change: { before: AgentRow; after: AgentRow; caller: PersonCaller; description: string },
): Promise<void> {
  await storeAgent(db, { ...change, world })
}

async function replay({ approval, person, request, routes }: ResolvedApproval): Promise<void> {
  await approveChange(request, approval, { person, routes })
}

async function drop({ approval, request }: ResolvedApproval): Promise<void> {
  await dropChange(request.db, approval.id)
}
