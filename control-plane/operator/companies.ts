import type { CompanyUuid } from '../../shared/lib/ids.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Tx } from '../db/open.ts'
import { cancelRuns } from '../run/endings/cancel-runs.ts'
import { resumeWorkflows } from '../resources/workflows/steps/resume.ts'
import { findCompany } from '../resources/workspaces/company-store.ts'
import {
  findWorkspaceBySlug,
  listAllWorkspaces,
  listWorkspacesOfCompany,
  replaceWorkspace,
  type WorkspaceRow,
} from '../resources/workspaces/store.ts'
import { OperatorError } from './people.ts'

// Companies whose agents do no work until the operator says otherwise.

interface ShownCompany {
  id: CompanyUuid
  name: string
  /** Slugs. */
  workspaces: string[]
  isLocked: boolean
}

/**
 * Locks a company: in its workspaces wakes are declined, and runs end, both as `billing_locked`; people go on to read and write.
 * `workspace`: the slug of one of its workspaces. Repeating it does nothing.
 */
export async function lockCompany(
  tx: Tx,
  world: World,
  { workspace, leaseMs }: { workspace: string; leaseMs: number },
): Promise<ShownCompany> {
  const found = await workspacesOf(tx, workspace)
  for (const each of found.filter(({ isBillingLocked }) => !isBillingLocked)) {
    await replaceWorkspace(tx, each, { ...each, isBillingLocked: true, updatedAt: world.now() })
    const { id } = each
    const reason = 'The operator of this server locked the company of this workspace.'
    const of = { workspaceId: id, subject: 'workspace', subjectId: id, extent: 'live' } as const
    await cancelRuns(tx, { ...of, exitReason: 'billing_locked', reason }, { world, leaseMs })
  }
  return shown(tx, found, true)
}

export async function unlockCompany(tx: Tx, world: World, { workspace }: { workspace: string }): Promise<ShownCompany> {
  const found = await workspacesOf(tx, workspace)
  for (const each of found.filter(({ isBillingLocked }) => isBillingLocked)) {
    await replaceWorkspace(tx, each, { ...each, isBillingLocked: false, updatedAt: world.now() })
    await resumeWorkflows(tx, each.id, world.now())
  }
  return shown(tx, found, false)
}

const most = 10_000

export async function shownCompanies(tx: Tx): Promise<{ companies: ShownCompany[] }> {
  const byCompany = Map.groupBy(await listAllWorkspaces(tx, most), ({ companyId }) => companyId)
  const companies: ShownCompany[] = []
  for (const of of byCompany.values())
    companies.push(
      await shown(
        tx,
        of,
        of.some((each) => each.isBillingLocked),
      ),
    )
  return { companies }
}

async function workspacesOf(tx: Tx, slug: string): Promise<WorkspaceRow[]> {
  const workspace = await findWorkspaceBySlug(tx, slug)
  if (workspace === null) throw new OperatorError(`There is no workspace ${slug}.`)
  return listWorkspacesOfCompany(tx, workspace.companyId)
}

async function shown(tx: Tx, workspaces: readonly WorkspaceRow[], isLocked: boolean): Promise<ShownCompany> {
  const id = workspaces[0]!.companyId
  const name = (await findCompany(tx, id))?.name ?? ''
  return { id, name, workspaces: workspaces.map(({ slug }) => slug), isLocked }
}
