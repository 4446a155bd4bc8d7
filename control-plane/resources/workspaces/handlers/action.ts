import type { Knex } from 'knex'
import { changedRow } from '../../../db/changed-row.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { workspaceActionRoutes } from '../../../../shared/api/workspace-actions.ts'
import { hasRole } from '../../../http/callers.ts'
import { JsonText } from '../../../http/json-text.ts'
import { implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { cancelRuns } from '../../../run/endings/cancel-runs.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import type { WorkspaceContent } from '../content.ts'
import { findCompany, replaceCompany } from '../company-store.ts'
import { namedWorkspace } from '../lookup.ts'
import { presentWorkspace } from '../own/present.ts'
import { removeWorkspace } from './remove.ts'
import { isHalted } from '../rules.ts'
import { replaceWorkspace, type WorkspaceRow } from '../store.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'

type Dependencies = Pick<ResourceDependencies, 'leaseMs'>

type Routes = typeof workspaceActionRoutes

export function workspaceActionHandlers(deps: Dependencies, content: WorkspaceContent): ImplementedRoute[] {
  const halting = { ...deps, content }
  return implement(workspaceActionRoutes, {
    pauseAgents: (input) => change(input, halting, { agentsPaused: true }),
    resumeAgents: (input) => change(input, halting, { agentsPaused: false }),
    archive: (input) => change(input, halting, { status: 'archived' }),

    async export({ db, caller, params, world }) {
      const { id } = await namedWorkspace(db, caller, params.workspaceId)
      return new JsonText(
        'manifest',
        content.write(db as Knex, id, () => world.now()),
        async (reader) => {
          if (reader.kind !== 'person' || !hasRole(reader, 'admin')) fail('http_exception')
          await namedWorkspace(db, reader, id)
        },
      )
    },

    async delete({ db, caller, params, body, world }) {
      const workspace = await namedWorkspace(db, caller, params.workspaceId)
      if (body.confirmName !== workspace.name) {
        const fields = [{ path: 'confirmName', message: 'not the name of the workspace' }]
        fail('validation_error', { param: 'confirmName', details: { fields } })
      }
      const { companyDeleted } = await removeWorkspace(db, workspace, world)
      // This server takes no payments, so there is no subscription to cancel.
      return { billing: { companyDeleted, subscriptionCancelled: false } }
    },

    updateCompany: renameCompany,

    async companyConfig({ db, caller, params }) {
      return presentConfig(await namedWorkspace(db, caller, params.workspaceId))
    },

    async updateCompanyConfig({ db, caller, params, body, world }) {
      const before = await namedWorkspace(db, caller, params.workspaceId)
      const changes = withoutUndefined({
        toolPermissionDefault: body.toolPermissionDefault,
        defaultMaxTurns: body.maxTurns,
      })
      const after = changedRow(before, changes, world.now())
      await replaceWorkspace(db, before, after)
      return presentConfig(after)
    },
  })
}

/** Changes the workspace as a whole; repeating a change does nothing. */
async function change(
  { db, caller, params, world }: HandlerInput<Routes['pauseAgents' | 'resumeAgents' | 'archive']>,
  deps: Dependencies & { content: WorkspaceContent },
  to: Partial<Pick<WorkspaceRow, 'agentsPaused' | 'status'>>,
) {
  const before = await namedWorkspace(db, caller, params.workspaceId)
  const changes = Object.entries(to).some(([key, value]) => before[key as keyof typeof to] !== value)
  if (!changes) return presentWorkspace(before)
  const now = world.now()
  const after = { ...before, ...to, updatedAt: now }
  await replaceWorkspace(db, before, after)
  if (isHalted(after)) {
    const reason = after.status === 'archived' ? 'The workspace was archived.' : 'The agents were paused.'
    const { id: workspaceId } = after
    await cancelRuns(
      db,
      {
        workspaceId,
        subject: 'workspace',
        subjectId: workspaceId,
        extent: 'waiting',
        exitReason: 'company_paused',
        reason,
      },
      { world, leaseMs: deps.leaseMs },
    )
  }
  if (isHalted(before) && !isHalted(after)) await deps.content.resumed(db, after.id, now)
  return presentWorkspace(after)
}

async function renameCompany({ db, caller, params, body, world }: HandlerInput<Routes['updateCompany']>) {
  const workspace = await namedWorkspace(db, caller, params.workspaceId)
  const company = (await findCompany(db, workspace.companyId)) ?? fail('resource_not_found')
  if (company.name !== body.name) await replaceCompany(db, company, { name: body.name, at: world.now() })
  return { id: company.id, name: body.name }
}

const presentConfig = ({ toolPermissionDefault, defaultMaxTurns }: WorkspaceRow) => ({
  toolPermissionDefault,
  maxTurns: defaultMaxTurns,
})
