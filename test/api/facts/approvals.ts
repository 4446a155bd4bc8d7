import fc from 'fast-check'
import { raiseApproval } from '../../../control-plane/resources/approvals/steps/raise.ts'
import type { Stage } from '../contract/stage.ts'
import { asked, askedOf, askedTooLate, asker, idOf } from './kit/holds.ts'
import { nobody, on, plain, postKeyed, thing } from './kit/recipe.ts'
import type { CodeRecipe, Placed, ResourceFacts } from './kit/resource-facts.ts'

const anApproval = (stage: Stage) => idOf('approval', asked(stage, '/approvals'))

async function resolvedApproval(stage: Stage): Promise<string> {
  const id = await anApproval(stage)
  await postKeyed(stage, `/approvals/${id}/approve`, {})
  return id
}
/** The platform's own: nobody resolves it, and it is assigned to nobody. */
async function aBreach({ server, owner }: Stage): Promise<string> {
  const gatedThing = {
    kind: 'budget',
    name: 'workspace',
    inputDigest: null,
    safeSummary: 'Spent',
    scope: 'once',
  } as const
  const of = { agentRef: null, runId: null, taskId: null, conversationId: null, sessionId: null }
  const raised = {
    ...of,
    workspaceId: owner.workspaceId,
    trigger: 'budget_breach',
    prompt: 'Spent',
    gatedThing,
  } as const
  return server.database.root.transaction(async (tx) => raiseApproval(tx, raised, server.world))
}

const assignment = (stage: Stage) => ({ assignedTo: { type: 'user', id: stage.member.userId }, reason: 'on call' })
const unknown = 'apr_0000000000000000'
const verbs = ['approve', 'reject'] as const

const codes: readonly CodeRecipe[] = [
  on('approvals.list', '400 invalid_cursor', ({ server }) => server.call('/approvals?startingAfter=a&endingBefore=b')),
  on('approvals.get', '400 invalid_include', async (stage) =>
    stage.server.call(`/approvals/${await anApproval(stage)}?include[]=agent`),
  ),
  on('approvals.get', '404 approval_not_found', ({ server }) => server.call(`/approvals/${unknown}`)),
  ...verbs.flatMap((verb) => [
    on(`approvals.${verb}`, '404 approval_not_found', (stage) => postKeyed(stage, `/approvals/${unknown}/${verb}`, {})),
    on(`approvals.${verb}`, '409 approval_resolved', async (stage) =>
      postKeyed(stage, `/approvals/${await resolvedApproval(stage)}/${verb}`, {}),
    ),
    on(`approvals.${verb}`, '403 agent_cannot_resolve_approval', async (stage) =>
      postKeyed(stage, `/approvals/${await anApproval(stage)}/${verb}`, {}, { token: stage.live.token }),
    ),
    on(`approvals.${verb}`, '403 approval_assignee_mismatch', async (stage) =>
      postKeyed(stage, `/approvals/${await anApproval(stage)}/${verb}`, {}, { token: stage.admin.token }),
    ),
    on(`approvals.${verb}`, '409 user_cannot_resolve_system_approval', async (stage) =>
      postKeyed(stage, `/approvals/${await aBreach(stage)}/${verb}`, {}),
    ),
  ]),
  on('approvals.assign', '404 approval_not_found', (stage) =>
    postKeyed(stage, `/approvals/${unknown}/assign`, assignment(stage)),
  ),
  on('approvals.assign', '409 approval_resolved', async (stage) =>
    postKeyed(stage, `/approvals/${await resolvedApproval(stage)}/assign`, assignment(stage)),
  ),
  on('approvals.assign', '409 approval_not_user_assignable', async (stage) =>
    postKeyed(stage, `/approvals/${await aBreach(stage)}/assign`, assignment(stage)),
  ),
  on('approvals.assign', '403 not_authorized', async (stage) =>
    postKeyed(stage, `/approvals/${await anApproval(stage)}/assign`, assignment(stage), { token: stage.member.token }),
  ),
  on('approvals.assign', '404 assignee_not_found', async (stage) =>
    postKeyed(stage, `/approvals/${await anApproval(stage)}/assign`, { assignedTo: { id: nobody }, reason: 'x' }),
  ),
  on('approvals.create', '403 user_cannot_create_approval', (stage) => postKeyed(stage, '/approvals', { prompt: 'x' })),
  on('approvals.create', '403 platform_change_not_raisable', (stage) =>
    asked(stage, '/approvals', { trigger: 'platform_change' }),
  ),
  on('approvals.create', '404 run_not_found', (stage) => asked(stage, '/approvals', { runId: stage.live.runId })),
  on('approvals.create', '403 author_must_be_self', (stage) =>
    asked(stage, '/approvals', { requestedBy: { type: 'agent', id: stage.live.agentId } }),
  ),
  on('approvals.create', '409 hitl_stop_failed', (stage) => askedTooLate(stage, '/approvals')),
]

export const approvalFacts: ResourceFacts = {
  requests: {
    'approvals.list': plain,
    'approvals.get': async (stage) => ({ params: { approvalId: await anApproval(stage) } }),
    'approvals.create': asker,
    'approvals.approve': async (stage) => ({ params: { approvalId: await anApproval(stage) }, body: {} }),
    'approvals.reject': async (stage) => ({ params: { approvalId: await anApproval(stage) }, body: { reason: 'No' } }),
    'approvals.assign': async (stage) => ({ params: { approvalId: await anApproval(stage) }, body: assignment(stage) }),
  },
  codes,

  unknownIds: { approvalId: unknown },
  things: async (keeper) => {
    const gatedThing = { name: 'Bash', toolArgs: { command: 'make' } }
    const body = { prompt: 'May I?', trigger: 'tool_permission', gatedThing }
    return { approvalId: await idOf('approval', askedOf(keeper, '/approvals', body)) }
  },
  places: (
    [
      ['taskId', 'taskId'],
      ['runId', 'runId'],
      ['conversationId', 'conversations.id'],
      ['assignedToUserId', 'userId'],
      ['startingAfter', 'approvalId'],
    ] as const
  ).map(([key, name]): Placed => ['approvals.list', 'GET', (_, ids) => ({ path: `/approvals?${key}=${ids[name]}` })]),
  named: { startingAfter: thing('approvalId') },
  hostile: { appliedScope: fc.constantFrom('always', 'once') },
}
