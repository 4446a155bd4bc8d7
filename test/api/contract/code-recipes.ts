import { halfRequest } from '../../kit/half-request.ts'
import type { CallOptions, Reply } from '../../kit/server.ts'
import { unknownIds } from './every-route.ts'
import type { Stage } from './stage.ts'

/**
 * A real request for each code of document 1 on the routes the documents name for it. What every route has in common is
 * made in `documents-errors.test.ts` from requests that would succeed.
 */
export interface CodeRecipe {
  route: string
  /** `404 resource_not_found` */
  outcome: string
  provoke: (stage: Stage) => Promise<Reply>
}
export const on = (route: string, outcome: string, provoke: CodeRecipe['provoke']): CodeRecipe => ({
  route,
  outcome,
  provoke,
})

export const put = (body: unknown, token?: string): CallOptions => write('PUT', body, token)
export const patch = (body: unknown, token?: string): CallOptions => write('PATCH', body, token)
export const post = (body: unknown = {}, token?: string): CallOptions => write('POST', body, token)
function write(method: string, body: unknown, token?: string): CallOptions {
  return { method, body, ...(token === undefined ? {} : { token }) }
}
const newOwnerId = 'newOwnerId'
const nobody = 'usr_0000000000000000'

async function manyIds(stage: Stage, path: string, id: string): Promise<Reply> {
  return stage.server.call(`${path}?ids=${Array.from({ length: 101 }, () => id).join(',')}`)
}

export const agentRecipes: readonly CodeRecipe[] = [
  on('agents.list', '400 too_many_ids', (stage) => manyIds(stage, '/agents', 'agt_0000000000000000')),
  on('agents.list', '400 ids_exclusive', ({ server }) => server.call('/agents?ids=me&q=x')),
  on('agents.list', '403 list_deleted_forbidden', ({ server, live }) =>
    server.call('/agents?status=deleted', { token: live.token }),
  ),
  on('agents.update', '422 invalid_status_transition', async (stage) =>
    stage.server.call(`/agents/${await stage.agent()}`, patch({ status: 'idle' })),
  ),
  on('agents.update', '400 config_write_forbidden', async (stage) =>
    stage.server.call(`/agents/${await stage.agent()}`, patch({ model: 'gpt-5' })),
  ),
  on('agents.update', '400 identity_write_forbidden', async ({ server, live }) =>
    server.call('/agents/me', patch({ identityMd: 'Mine' }, live.token)),
  ),
  on('agents.update', '400 reporting_cycle', async (stage) => {
    const above = await stage.agent()
    const below = await stage.agent({ reportingTo: above })
    return stage.server.call(`/agents/${above}`, patch({ reportingTo: below }))
  }),
  on('agents.create', '422 folder_requires_device_environment', async (stage) =>
    stage.server.call('/agents', post({ name: 'Cloud', environment: 'cloud', defaultFolderId: await stage.folder() })),
  ),
  on('agents.update', '422 folder_requires_device_environment', async (stage) => {
    const agentId = await stage.agent({ environment: 'cloud' })
    return stage.server.call(`/agents/${agentId}`, patch({ defaultFolderId: await stage.folder() }))
  }),
  on('agents.config.put', '422 folder_requires_device_environment', async (stage) => {
    const agentId = await stage.agent({ defaultFolderId: await stage.folder() })
    return stage.server.call(`/agents/${agentId}/config`, put({ config: { runtime: { environment: 'cloud' } } }))
  }),
  on('agents.create', '403 default_folder_forbidden', async (stage) =>
    stage.server.call('/agents', post({ name: 'Mine', defaultFolderId: await stage.folder() }, stage.member.token)),
  ),
  on('agents.update', '403 default_folder_forbidden', async (stage) =>
    stage.server.call(
      `/agents/${await stage.agent()}`,
      patch({ defaultFolderId: await stage.folder() }, stage.member.token),
    ),
  ),
  on('agents.update', '403 default_repo_forbidden', async (stage) =>
    stage.server.call(
      `/agents/${await stage.agent()}`,
      patch({ defaultRepoId: crypto.randomUUID() }, stage.member.token),
    ),
  ),
  on('agents.history.revert', '403 agent_config_human_only', async (stage) => {
    const { agentId, token } = await stage.caller()
    const config = { runtime: { triggers: { wakeOnHook: false } } }
    const { revision } = await stage.server.ok(`/agents/${agentId}/config`, put({ config }))
    return stage.server.call(`/agents/me/history/${revision.id}/revert`, post(undefined, token))
  }),
  on('agents.history.revert', '422 config_revert_unsupported', async (stage) => {
    const agentId = await stage.agent()
    await stage.server.ok(`/agents/${agentId}/sessions/reset`, { method: 'POST' })
    const [reset] = (await stage.server.ok(`/agents/${agentId}/history`)).data
    return stage.server.call(`/agents/${agentId}/history/${reset.id}/revert`, post())
  }),
  ...['config', 'identity/agent-md'].map((path) =>
    on(path === 'config' ? 'agents.config.put' : 'agents.identity.putAgentMd', '409 agent_md_stale', async (stage) =>
      stage.server.call(`/agents/me/${path}`, put({ agentMd: 'Mine' }, (await stage.caller()).token)),
    ),
  ),
  on('agents.restore', '403 restore_forbidden', async (stage) =>
    stage.server.call(`/agents/${await stage.deletedAgent()}/restore`, post({}, stage.member.token)),
  ),
  on('agents.restore', '409 not_deleted', async (stage) =>
    stage.server.call(`/agents/${await stage.agent()}/restore`, post()),
  ),
  ...transferRecipes('agents.transferOwner', async (stage) => `/agents/${await stage.agent()}`),
  ...['create', 'update', 'delete', 'config.put', 'clone'].map((name) =>
    on(`agents.${name}`, '403 platform_change_requires_run', (stage) => changeByEndedRun(stage, `agents.${name}`)),
  ),
]

function transferRecipes(route: string, pathOf: (stage: Stage) => Promise<string>): CodeRecipe[] {
  const transfer = async (stage: Stage, to: string, token?: string) =>
    stage.server.call(`${await pathOf(stage)}/transfer-owner`, post({ [newOwnerId]: to }, token))
  return [
    on(route, '403 owner_transfer.forbidden', (stage) => transfer(stage, stage.member.userId, stage.member.token)),
    on(route, '409 owner_transfer.same_owner', (stage) => transfer(stage, stage.owner.userId)),
    on(route, '404 owner_transfer.user_not_found', (stage) => transfer(stage, nobody)),
  ]
}

/** The agent's token is accepted; before its request's body is there, the run has ended. */
async function changeByEndedRun(stage: Stage, route: string): Promise<Reply> {
  const { agentId, runId, token } = await stage.caller()
  const target = await stage.agent()
  const [path, body, method] = {
    'agents.create': ['/agents', { name: 'Late' }, 'POST'],
    'agents.update': [`/agents/${target}`, { description: 'Late' }, 'PATCH'],
    'agents.delete': [`/agents/${target}`, {}, 'DELETE'],
    'agents.config.put': [
      `/agents/${agentId}/config`,
      { config: { runtime: { triggers: { wakeOnHook: false } } } },
      'PUT',
    ],
    'agents.clone': [`/agents/${target}/clones`, { name: 'Late' }, 'POST'],
  }[route] as [string, unknown, string]
  return halfRequest(stage.server, path, { method, token, body, between: () => stage.endRun(runId) })
}

/** A run that the stage's device has taken, and that ends afterwards. */
async function withWork(stage: Stage, use: (runId: string, run: { fence: number; token: string }) => Promise<Reply>) {
  const agentId = await stage.agent({}, stage.worker.token)
  await stage.server.ok(`/agents/${agentId}/runs`, { body: {}, token: stage.worker.token })
  const run = await stage.device.take()
  try {
    return await use(run.runId, run)
  } finally {
    const { status } = await stage.server.ok(`/runs/${run.runId}`)
    if (status === 'running') await run.end()
  }
}

export const runRecipes: readonly CodeRecipe[] = [
  on('runs.list', '400 too_many_ids', (stage) => manyIds(stage, '/runs', 'run_0000000000000000')),
  on('runs.list', '400 ids_exclusive', ({ server, live }) => server.call(`/runs?ids=${live.runId}&limit=5`)),
  on('runs.list', '400 expand.not_allowed_on_list', ({ server }) => server.call('/runs?expand[]=latestEvents')),
  on('runs.get', '400 expand_unknown', ({ server, live }) => server.call(`/runs/${live.runId}?expand[]=everything`)),
  on('runs.cancel', '409 run.not_cancellable', async (stage) =>
    stage.server.call(`/runs/${await stage.cancelledRun()}/cancel`, post()),
  ),
  on('runs.retry', '409 run.not_retriable', ({ server, live }) => server.call(`/runs/${live.runId}/retry`, post())),
  on('runs.retry', '503 run.not_retriable', async (stage) => {
    const { agentId, runId } = await stage.caller()
    await stage.server.ok(`/runs/${runId}/cancel`, post())
    await stage.server.ok(`/agents/${agentId}`, patch({ status: 'terminated' }))
    return stage.server.call(`/runs/${runId}/retry`, post())
  }),
  on('runs.cancel', '403 run.cancel_forbidden', async (stage) =>
    stage.server.call(`/runs/${await stage.queuedRun()}/cancel`, post({}, stage.member.token)),
  ),
  on('runs.retry', '403 run.cancel_forbidden', async (stage) =>
    stage.server.call(`/runs/${await stage.cancelledRun()}/retry`, post({}, stage.member.token)),
  ),
  ...(['context', 'manifest'] as const).map((what) => {
    const code = what === 'context' ? 'run.context_not_stored' : 'run.manifest_not_pinned'
    return on(`runs.${what}`, `404 ${code}`, async (stage) => {
      const runId = await stage.queuedRun()
      // As a run of before it was kept.
      await stage.server.database.root('run_details').where({ run_id: runId }).delete()
      return stage.server.call(`/runs/${runId}/${what}`)
    })
  }),
  on('runs.changeSet', '404 source_unknown', async (stage) =>
    stage.server.call(`/runs/${await stage.queuedRun()}/change-set`),
  ),
  ...(['source_unknown', 'repo_unavailable', 'too_large', 'diff_unavailable'] as const).map((code) => {
    const status = { source_unknown: 404, repo_unavailable: 409, too_large: 413, diff_unavailable: 502 }[code]
    return on('runs.changeSet', `${status} ${code}`, async (stage) => {
      const before = stage.device.changeSetAnswer
      stage.device.changeSetAnswer = () => ({ ok: false, code, message: 'as the device says' })
      const reply = await stage.server.call(`/runs/${stage.live.runId}/change-set`)
      stage.device.changeSetAnswer = before
      return reply
    })
  }),
  on('runs.output', '403 run_output.not_this_run', ({ server, live }) =>
    server.call(`/runs/${live.runId}/output`, post({ data: 1 })),
  ),
  on('runs.output', '409 run_output.run_terminal', (stage) =>
    withWork(stage, (runId, { token }) =>
      halfRequest(stage.server, '/runs/current/output', {
        token,
        body: { data: 1 },
        between: () => stage.endRun(runId),
      }),
    ),
  ),
  on('runs.output', '422 run_output.invalid', ({ server, live }) =>
    server.call('/runs/current/output', post({ schema: 'Unheard', data: 1 }, live.token)),
  ),
]

export const projectRecipes: readonly CodeRecipe[] = [
  on('workspaces.update', '409 slug_taken', async (stage) => {
    const { workspaceId, token } = await stage.stranger()
    return stage.server.call(`/workspaces/${workspaceId}`, patch({ slug: 'main' }, token))
  }),
  on('projects.create', '422 prefix_reserved', async (stage) => {
    const { issuePrefix } = await stage.server.ok('/workspaces')
    return stage.server.call('/projects', post({ name: 'P', prefix: issuePrefix }))
  }),
  on('projects.create', '409 duplicate_prefix', async (stage) => {
    await stage.server.call('/projects', post({ name: 'P', prefix: 'TWIN' }))
    return stage.server.call('/projects', post({ name: 'P', prefix: 'TWIN' }))
  }),
  on('projects.create', '404 agent_not_found', ({ server }) =>
    server.call('/projects', post({ name: 'P', leadAgentId: unknownIds['agentId'] })),
  ),
  on('projects.config.update', '404 agent_not_found', async (stage) =>
    stage.server.call(`/projects/${await stage.project()}/config`, patch({ leadAgentId: unknownIds['agentId'] })),
  ),
  on('projects.list', '403 list_deleted_forbidden', ({ server, live }) =>
    server.call('/projects?status=deleted', { token: live.token }),
  ),
  on('projects.restore', '403 restore_forbidden', async (stage) =>
    stage.server.call(`/projects/${await stage.deletedProject()}/restore`, post({}, stage.member.token)),
  ),
  on('projects.restore', '409 not_deleted', async (stage) =>
    stage.server.call(`/projects/${await stage.project()}/restore`, post()),
  ),
  ...transferRecipes('projects.transferOwner', async (stage) => `/projects/${await stage.project()}`),
  on('workspaces.delete', '403 http_exception', ({ server, owner, admin }) =>
    server.call(`/workspaces/${owner.workspaceId}`, { ...post({ confirmName: 'x' }, admin.token), method: 'DELETE' }),
  ),
]

export const deviceRecipes: readonly CodeRecipe[] = [
  on('devices.update', '403 remote_access_forbidden', async (stage) => {
    const { deviceId } = await stage.enrolled()
    return stage.server.call(`/devices/${deviceId}`, patch({ remoteControlRevoked: true }, stage.admin.token))
  }),
  on('devices.update', '404 device_not_found', ({ server }) =>
    server.call(`/devices/${crypto.randomUUID()}`, patch({ remoteControlRevoked: true })),
  ),
  on('devices.update', '404 resource_not_found', ({ server }) =>
    server.call(`/devices/${crypto.randomUUID()}`, patch({ isWorkspaceDefault: true })),
  ),
  on('devices.update', '400 invalid_id_format', ({ server, device }) =>
    server.call(`/devices/${device.identity.publicId}`, patch({ displayName: 'x' })),
  ),
  on('devices.delete', '400 invalid_id_format', ({ server, device }) =>
    server.call(`/devices/${device.identity.publicId}`, { method: 'DELETE' }),
  ),
  on('folders.update', '409 repo_already_mapped', async (stage) => {
    const deviceId = (await stage.enrolled()).publicId
    const [one, two] = [await stage.folder({ deviceId }), await stage.folder({ deviceId })]
    const body = { repoId: crypto.randomUUID() }
    await stage.server.ok(`/folders/${one}`, patch(body))
    return stage.server.call(`/folders/${two}`, patch(body))
  }),
]
