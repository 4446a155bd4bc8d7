import { toTimestamp } from '../../../../shared/api/ids.ts'
import type { Db } from '../../../db/open.ts'
import { listAgents } from '../../agents/store.ts'
import { listFiles } from '../../files/store.ts'
import { listLearnings } from '../../learnings/store.ts'
import { listProjects } from '../../projects/store.ts'
import { listTasks } from '../../tasks/list-store.ts'
import { listWorkflows, type WorkflowRow } from '../../workflows/store.ts'
import { manifestOf } from './manifest.ts'
import type { WorkspaceRow } from '../store.ts'

const pageSize = 200

/** Writes all live agents, projects and tasks of a workspace as Markdown, oldest first, its workflows by name, what its files are, and its learnings. */
export async function exportWorkspace(db: Db, workspace: WorkspaceRow, now: number): Promise<string> {
  const filter = { workspaceId: workspace.id, limit: pageSize }
  const agents = await readAll((before) => listAgents(db, { ...filter, ...before }))
  const projects = await readAll((before) => listProjects(db, { ...filter, ...before }))
  const tasks = await readAll(({ before }) =>
    listTasks(db, { ...filter, ...(before && { from: { ...before, direction: 'after' } }) }),
  )
  const workflows = await allWorkflows(db, workspace.id)
  const files = await readAll((before) => listFiles(db, { ...filter, visibleTo: null, ...before }))
  const learnings = await readAll((before) => listLearnings(db, { ...filter, ...before }))
  return manifestOf({ workspace, exportedAt: toTimestamp(now), agents, projects, tasks, workflows, files, learnings })
}

async function allWorkflows(db: Db, workspaceId: string): Promise<WorkflowRow[]> {
  const all: WorkflowRow[] = []
  for (;;) {
    const page = await listWorkflows(db, { workspaceId, afterName: all.at(-1)?.name ?? '', limit: pageSize })
    all.push(...page.slice(0, pageSize))
    if (page.length <= pageSize) return all
  }
}

/** Reads all pages, which come newest first with one row more than asked for. */
async function readAll<Row extends { createdAt: number; id: string }>(
  list: (page: { before?: { createdAt: number; id: string } }) => Promise<Row[]>,
): Promise<Row[]> {
  const all: Row[] = []
  for (;;) {
    const last = all.at(-1)
    const page = await list(last === undefined ? {} : { before: { createdAt: last.createdAt, id: last.id } })
    all.push(...page.slice(0, pageSize))
    if (page.length <= pageSize) return all.reverse()
  }
}
