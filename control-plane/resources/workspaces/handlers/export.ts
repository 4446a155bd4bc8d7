import { toTimestamp } from '../../../../shared/api/ids.ts'
import type { Db } from '../../../db/open.ts'
import { hashAgentMd } from '../../agents/agent-md.ts'
import { findAgent, listAgents, type ListedAgent } from '../../agents/store.ts'
import { listFiles } from '../../files/store.ts'
import { listLearnings } from '../../learnings/store.ts'
import { listProjects } from '../../projects/store.ts'
import { listTasks } from '../../tasks/list-store.ts'
import { findRevisionBody } from '../../wiki/revision-store.ts'
import { listPages, type WikiPageRow } from '../../wiki/store.ts'
import { listWorkflows, type WorkflowRow } from '../../workflows/store.ts'
import { longestInstructions, manifestOf, type ExportedAgent, type ExportedPage } from './manifest.ts'
import type { WorkspaceRow } from '../store.ts'

const pageSize = 200

/** Writes all live agents, projects and tasks of a workspace as Markdown, oldest first, its workflows by name, what its files are, its wiki and its learnings. */
export async function exportWorkspace(db: Db, workspace: WorkspaceRow, now: number): Promise<string> {
  const filter = { workspaceId: workspace.id, limit: pageSize }
  const agents = await withInstructions(db, await readAll((before) => listAgents(db, { ...filter, ...before })))
  const projects = await readAll((before) => listProjects(db, { ...filter, ...before }))
  const tasks = await readAll(({ before }) =>
    listTasks(db, { ...filter, ...(before && { from: { ...before, direction: 'after' } }) }),
  )
  const workflows = await allWorkflows(db, workspace.id)
  const files = await readAll((before) => listFiles(db, { ...filter, visibleTo: null, ...before }))
  const pages = await withBodies(
    db,
    await readAll((before) => listPages(db, { ...filter, isArchived: null, ...before })),
  )
  const learnings = await readAll((before) => listLearnings(db, { ...filter, ...before }))
  const all = { agents, projects, tasks, workflows, files, pages, learnings }
  return manifestOf({ workspace, exportedAt: toTimestamp(now), ...all })
}

async function withInstructions(db: Db, agents: readonly ListedAgent[]): Promise<ExportedAgent[]> {
  const all: ExportedAgent[] = []
  let left = longestInstructions
  for (const agent of agents) {
    const isEmpty = agent.agentMdHash === hashAgentMd('')
    const agentMd = isEmpty ? '' : left < 0 ? null : ((await findAgent(db, agent.id))?.agentMd ?? '')
    left -= agentMd?.length ?? 0
    all.push({ ...agent, agentMd })
  }
  return all
}

/** Beyond this many tokens in total, texts of pages are left out. */
const mostTokens = 4_000_000

async function withBodies(db: Db, pages: readonly WikiPageRow[]): Promise<ExportedPage[]> {
  const all: ExportedPage[] = []
  let left = mostTokens
  for (const page of pages) {
    left -= page.tokenCount ?? 0
    const isRead = page.currentRevisionId !== null && left >= 0
    all.push({ ...page, body: isRead ? await findRevisionBody(db, page.currentRevisionId!) : null })
  }
  return all
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
