import { idFrom } from '../../../../shared/lib/ids.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { hashAgentMd } from '../../agents/agent-md.ts'
import { findAgent } from '../../agents/store.ts'
import { mostRules, withoutRules, withRules } from '../../agents/permission-rules.ts'
import { storeAgent } from '../../agents/steps/store-agent.ts'
import { acceptLearning, rejectLearning } from '../../learnings/steps/review.ts'
import { approveChange, dropChange } from '../../platform-changes/steps/replay.ts'
import { endRejectedCommand } from '../../workflows/steps/command-rejected.ts'
import type { ResolutionEffects, ResolvedApproval } from '../../approvals/resolution-effects.ts'
import { allowRulesOf } from '../../approvals/rules.ts'

/** Gives the effects of a resolution to the handlers of approvals (`routes.ts`). */
export const resolutionEffects: ResolutionEffects = {
  byTrigger: {
    tool_permission: { onApprove: allowFromNowOn },
    instruction_publish: { onApprove: publishInstructions },
    learning_review: {
      onApprove: ({ approval, person, request: { db, world }, catalog }) =>
        acceptLearning(db, { approvalId: approval.id, world, person, catalog }),
      onReject: ({ approval, reason, request: { db, world } }) =>
        rejectLearning(db, { approvalId: approval.id, world, note: reason }),
    },
    platform_change: {
      onApprove: ({ approval, person, request, routes }) => approveChange(request, approval, { person, routes }),
      onReject: ({ approval, request }) => dropChange(request.db, approval.id),
    },
  },
  endStepOf: ({ approval, request: { db, world } }) => endRejectedCommand(db, approval.runId, world.now()),
}

/** `always`: a rule allows the call from now on, written like any change of the agent's settings. */
async function allowFromNowOn({ approval, person, scope, request }: ResolvedApproval): Promise<void> {
  if (scope !== 'always' || approval.agentRef === null) return
  const before = await findAgent(request.db, approval.agentRef)
  if (before === null || before.deletedAt !== null) return
  const rules = allowRulesOf(approval.gatedThing)
  if (rules === null)
    return fail('validation_error', {
      param: 'appliedScope',
      message: 'No rule fits exactly this call. Approve it once, or write a rule into the permissions of the agent.',
    })
  const allow = withRules(before.tools.allow, rules)
  if (allow.length > mostRules)
    fail('validation_error', { param: 'appliedScope', message: `The agent has ${mostRules} rules.` })
  const description = `Allowed ${approval.gatedThing.name} by approving ${approval.id}.`
  const tools = { ...before.tools, allow, ask: withoutRules(before.tools.ask, rules) }
  const { db, world } = request
  await storeAgent(db, { before, after: { ...before, tools }, caller: person, world, description })
}

/** Writes the text only if it replaces the one that the agent had read. */
async function publishInstructions({ approval, person, request }: ResolvedApproval): Promise<void> {
  const { instructions } = approval.gatedThing
  if (instructions === undefined) return
  const { agentMd, agentMdHash } = instructions
  const before = await findAgent(request.db, idFrom(instructions.agentId))
  if (before === null || before.deletedAt !== null)
    return fail('agent_md_stale', { message: 'The agent is deleted.', param: 'agentId' })
  if (before.agentMdHash !== agentMdHash)
    fail('agent_md_stale', {
      message: 'AGENT.md was changed since this was asked for. Reject it, and let it be asked anew.',
    })
  const caller = approval.agentRef === null ? person : { ...person, onBehalfOf: approval.agentRef }
  const after = { ...before, agentMd, agentMdHash: hashAgentMd(agentMd) }
  const { db, world } = request
  await storeAgent(db, { before, after, caller, world, description: `Published by approving ${approval.id}.` })
}
