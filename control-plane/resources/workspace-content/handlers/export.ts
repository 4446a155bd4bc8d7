import type { TaskId, WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { tryLockName } from '../../../db/dialect.ts'
import type { Db } from '../../../db/open.ts'
import { openSnapshot } from '../../../db/snapshot.ts'
import { hashAgentMd } from '../../agents/agent-md.ts'
import { handleText } from '../../agents/present.ts'
import { countAgents, findAgent, listAgents, type ListedAgent } from '../../agents/store.ts'
import { sortKeyOf } from '../../connections/order.ts'
import { countConnections, listConnections, type ConnectionRow } from '../../connections/store.ts'
import { countFiles, listFiles } from '../../files/store.ts'
import { countLearnings, listLearnings } from '../../learnings/store.ts'
import { countProjects, listProjects } from '../../projects/store.ts'
import { countTasks, listTasks } from '../../tasks/list-store.ts'
import { listTasksByIds, type TaskRow } from '../../tasks/store.ts'
import { countMcpServers, listMcpServers } from '../../mcp-servers/store.ts'
import { countPlugins, listPlugins } from '../../plugins/store.ts'
import { countSkills, listSkills } from '../../skills/store.ts'
import { findRevisionBody } from '../../wiki/revision-store.ts'
import { countPages, listPages, type WikiPageRow } from '../../wiki/store.ts'
import { countWorkflows, listWorkflows } from '../../workflows/store.ts'
import { connectionSection, pluginSection, skillSection } from './manifest-carried.ts'
import { fileSection, headingOf, headOf, longestInstructions, pageSection, Sections, type Names } from './manifest.ts'
import { findWorkspace } from '../../workspaces/store.ts'

const pageSize = 200
/** Exports at once of one replica: each has a connection of its own. */
const mostExports = 3
const retryAfterS = 15

/**
 * Writes all live agents, projects and tasks of a workspace as Markdown, oldest first, its workflows by name, what its files are,
 * its wiki, its learnings, what its skills and plugins are, and to what it is connected. All of it is of one moment, and no more than a page of it is in memory; no write waits for it.
 */
export class WorkspaceExports {
  private readonly atWork = new Set<string>()

  /** Fails at its first piece when too many are written, or when the workspace is gone. */
  async *write(root: Knex, workspaceId: WorkspaceUuid, now: () => number): AsyncGenerator<string> {
    if (this.atWork.has(workspaceId) || this.atWork.size >= mostExports) tooMany()
    this.atWork.add(workspaceId)
    try {
      const snapshot = await openSnapshot(root)
      try {
        // The lock holds for all replicas.
        if (!(await tryLockName(snapshot.db, `export:${workspaceId}`))) tooMany()
        for await (const lines of linesOf(snapshot.db, workspaceId, now())) yield `${lines.join('\n')}\n`
      } finally {
        await snapshot.close()
      }
    } finally {
      this.atWork.delete(workspaceId)
    }
  }
}

function tooMany(): never {
  return fail('rate_limit_exceeded', {
    message: 'Other exports are being written; try again when they are done.',
    details: { retryAfter: retryAfterS },
    headers: { 'Retry-After': String(retryAfterS) },
  })
}

async function* linesOf(db: Db, workspaceId: WorkspaceUuid, now: number): AsyncGenerator<string[]> {
  const workspace = (await findWorkspace(db, workspaceId)) ?? fail('resource_not_found', { param: 'workspaceId' })
  const filter = { workspaceId, limit: pageSize }
  const seesAll = { seesAll: true, personUuid: null, agentRef: null }
  const agents = () => oldestFirst((after) => listAgents(db, { ...filter, after }))
  const projects = () => oldestFirst((after) => listProjects(db, { ...filter, after }))
  const sections = new Sections(await namesOf(agents(), projects()))
  yield [...headOf(workspace, toTimestamp(now)), ...headingOf('Agents', await countAgents(db, workspaceId, seesAll))]
  const instructions = { left: longestInstructions }
  for await (const page of agents())
    for (const agent of page) yield sections.agent({ ...agent, agentMd: await agentMdOf(db, agent, instructions) })
  yield headingOf('Projects', await countProjects(db, workspaceId, null))
  for await (const page of projects()) yield page.flatMap((project) => sections.project(project))
  yield headingOf('Tasks', await countTasks(db, workspaceId, null))
  for await (const page of tasksOf(db, workspaceId)) {
    const keys = await keysOf(db, page)
    yield page.flatMap((task) =>
      sections.task(task, task.parentTaskId && (keys.get(task.parentTaskId) ?? task.parentTaskId)),
    )
  }
  yield headingOf('Workflows', await countWorkflows(db, workspaceId, { withRetired: true }))
  for await (const page of workflowsOf(db, workspaceId)) yield page.flatMap((workflow) => sections.workflow(workflow))
  yield headingOf('Files', (await countFiles(db, { workspaceId, visibleTo: null })).count)
  for await (const page of oldestFirst((after) => listFiles(db, { ...filter, visibleTo: null, after })))
    yield page.flatMap(fileSection)
  yield headingOf('Wiki', await countPages(db, { workspaceId, withArchived: true }))
  const texts = { left: mostTokens }
  for await (const page of oldestFirst((after) => listPages(db, { ...filter, isArchived: null, after })))
    for (const one of page) yield pageSection({ ...one, body: await bodyOf(db, one, texts) })
  yield headingOf('Learnings', await countLearnings(db, { workspaceId }))
  for await (const page of oldestFirst((after) => listLearnings(db, { ...filter, after })))
    yield page.flatMap((learning) => sections.learning(learning))
  yield headingOf('Skills', await countSkills(db, workspaceId))
  for await (const page of oldestFirst((after) => listSkills(db, { ...filter, after })))
    yield page.flatMap(skillSection)
  yield headingOf('Plugins', await countPlugins(db, workspaceId))
  for await (const page of oldestFirst((after) => listPlugins(db, { ...filter, after })))
    yield page.flatMap(pluginSection)
  yield headingOf('Connections', await countConnections(db, { workspaceId, now }))
  for await (const page of connectionsOf(db, workspaceId, now)) yield page.flatMap((one) => connectionSection(one, now))
  yield headingOf('MCP servers', await countMcpServers(db, { workspaceId }))
  for await (const page of oldestFirst((after) => listMcpServers(db, { ...filter, after })))
    yield page.flatMap((server) => sections.mcpServer(server))
}

async function namesOf(
  agents: AsyncIterable<ListedAgent[]>,
  projects: AsyncIterable<{ id: string; name: string }[]>,
): Promise<Names> {
  const names = { agents: new Map<string, string>(), projects: new Map<string, string>() }
  for await (const page of agents)
    for (const agent of page) for (const id of [agent.id, agent.uuid]) names.agents.set(id, handleText(agent))
  for await (const page of projects) for (const { id, name } of page) names.projects.set(id, name)
  return names
}

/** null: it is left out. */
async function agentMdOf(db: Db, agent: ListedAgent, room: { left: number }): Promise<string | null> {
  if (agent.agentMdHash === hashAgentMd('')) return ''
  if (room.left < 0) return null
  const agentMd = (await findAgent(db, agent.id))?.agentMd ?? ''
  room.left -= agentMd.length
  return agentMd
}

/** Beyond this many tokens in total, texts of pages are left out. */
const mostTokens = 4_000_000

async function bodyOf(db: Db, page: WikiPageRow, room: { left: number }): Promise<string | null> {
  room.left -= page.tokenCount ?? 0
  if (page.currentRevisionId === null || room.left < 0) return null
  return findRevisionBody(db, page.currentRevisionId)
}

const tasksOf = (db: Db, workspaceId: WorkspaceUuid): AsyncGenerator<TaskRow[]> =>
  oldestFirst((after) => listTasks(db, { workspaceId, limit: pageSize, from: { ...after, direction: 'before' } }))

/** The keys of the parents of these tasks; those of archived ones are left out. */
async function keysOf(db: Db, tasks: readonly TaskRow[]): Promise<Map<TaskId, string>> {
  const ids = [...new Set(tasks.flatMap(({ parentTaskId: id }) => (id === null ? [] : [id])))]
  const [first] = tasks
  if (ids.length === 0 || first === undefined) return new Map()
  const parents = await listTasksByIds(db, first.workspaceId, ids)
  return new Map(parents.filter(({ archivedAt }) => archivedAt === null).map(({ id, key }) => [id, key]))
}

async function* workflowsOf(db: Db, workspaceId: WorkspaceUuid) {
  let afterName = ''
  for (;;) {
    const rows = await listWorkflows(db, { workspaceId, afterName, limit: pageSize })
    const page = rows.slice(0, pageSize)
    yield page
    if (rows.length <= pageSize) return
    afterName = page.at(-1)!.name
  }
}

async function* connectionsOf(db: Db, workspaceId: WorkspaceUuid, now: number): AsyncGenerator<ConnectionRow[]> {
  const sort = 'created_asc'
  let last: ConnectionRow | undefined
  for (;;) {
    const after = last === undefined ? {} : { after: sortKeyOf(sort, last) }
    const rows = await listConnections(db, { workspaceId, now, sort, limit: pageSize, ...after })
    const page = rows.slice(0, pageSize)
    yield page
    last = page.at(-1)
    if (rows.length <= pageSize || last === undefined) return
  }
}

/** Reads page after page of a list that answers one row more than it was asked for. */
async function* oldestFirst<Row extends { createdAt: number; id: string }>(
  list: (after: { createdAt: number; id: string }) => Promise<Row[]>,
): AsyncGenerator<Row[]> {
  let after = { createdAt: -1, id: '' }
  for (;;) {
    const rows = await list(after)
    const page = rows.slice(0, pageSize)
    yield page
    const last = page.at(-1)
    if (rows.length <= pageSize || last === undefined) return
    after = { createdAt: last.createdAt, id: last.id }
  }
}
