import type { ListedAgent } from '../../agents/store.ts'
import { handleText } from '../../agents/present.ts'
import type { FileRow } from '../../files/store.ts'
import type { LearningRow } from '../../learnings/store.ts'
import type { ProjectRow } from '../../projects/store.ts'
import type { TaskRow } from '../../tasks/store.ts'
import type { WikiPageRow } from '../../wiki/store.ts'
import type { WorkflowRow } from '../../workflows/store.ts'
import type { WorkspaceRow } from '../store.ts'

/**
 * The Markdown of a workspace's export (pure). Text of people is put into code spans or fences, so that it stays text.
 */

/** Beyond this many characters in total, instructions of agents are replaced by their hash. */
export const longestInstructions = 16_000_000
/** Beyond this many characters in total, programs of workflows are left out. */
const longestPrograms = 16_000_000
/** Beyond this many characters in total, bullets of learnings are left out. */
const longestLearnings = 16_000_000
/** Beyond this many characters in total, descriptions of tasks are left out. */
const longestDescriptions = 16_000_000

/** `agentMd` null: it is left out. */
export type ExportedAgent = ListedAgent & { agentMd: string | null }

export interface ManifestFacts {
  workspace: WorkspaceRow
  /** ISO 8601. */
  exportedAt: string
  agents: readonly ExportedAgent[]
  projects: readonly ProjectRow[]
  tasks: readonly TaskRow[]
  workflows: readonly WorkflowRow[]
  files: readonly FileRow[]
  pages: readonly ExportedPage[]
  learnings: readonly LearningRow[]
}

/** `body` is null when it was left out for its length, or when there is none. */
export type ExportedPage = WikiPageRow & { body: string | null }

export function manifestOf({
  workspace,
  exportedAt,
  agents,
  projects,
  tasks,
  workflows,
  files,
  pages,
  learnings,
}: ManifestFacts): string {
  const byUuid = new Map(agents.map((agent) => [agent.uuid, agent]))
  let left = longestInstructions
  const agentSections = agents.flatMap((agent) => {
    left -= agent.agentMd?.length ?? 0
    return agentSection(agent, byUuid, left >= 0)
  })
  return [
    `# Workspace ${span(workspace.name)}`,
    '',
    ...facts({
      Id: workspace.id,
      Slug: workspace.slug,
      Status: workspace.status,
      'Issue prefix': workspace.issuePrefix,
      Description: workspace.description,
      'Default model': workspace.defaultModel,
      'Exported at': exportedAt,
    }),
    ...(workspace.contextMd ? ['', 'Context:', '', ...fence(workspace.contextMd)] : []),
    '',
    `## Agents (${agents.length})`,
    ...(agents.length === 0 ? ['', 'None.'] : agentSections),
    '',
    `## Projects (${projects.length})`,
    ...(projects.length === 0 ? ['', 'None.'] : projects.flatMap((project) => projectSection(project, byUuid))),
    '',
    `## Tasks (${tasks.length})`,
    ...(tasks.length === 0 ? ['', 'None.'] : taskSections(tasks, { agents, projects })),
    '',
    `## Workflows (${workflows.length})`,
    ...(workflows.length === 0 ? ['', 'None.'] : workflowSections(workflows)),
    '',
    `## Files (${files.length})`,
    ...(files.length === 0 ? ['', 'None.'] : files.flatMap(fileSection)),
    '',
    `## Wiki (${pages.length})`,
    ...(pages.length === 0 ? ['', 'None.'] : pages.flatMap(pageSection)),
    '',
    `## Learnings (${learnings.length})`,
    ...(learnings.length === 0 ? ['', 'None.'] : learningSections(learnings)),
    '',
  ].join('\n')
}

type Agents = ReadonlyMap<string, ListedAgent>

function agentSection(agent: ExportedAgent, agents: Agents, isWhole: boolean): string[] {
  const instructions =
    isWhole && agent.agentMd !== null
      ? ['', 'AGENT.md:', '', ...fence(agent.agentMd)]
      : ['', `AGENT.md is left out for its length; its hash is \`${agent.agentMdHash}\`.`]
  return [
    '',
    `### ${span(agent.name)}`,
    '',
    ...facts({
      Id: agent.id,
      Handle: handleText(agent),
      Role: agent.role,
      Status: agent.status,
      Description: agent.description,
      Model: agent.model,
      'Backup model': agent.backupModel,
      Harness: agent.harness,
      Environment: agent.environment,
      Visibility: agent.visibility,
      'Reports to': nameOf(agent.reportingTo, agents),
    }),
    ...(agent.agentMd === '' ? [] : instructions),
  ]
}

/** Their bytes are downloaded one by one. */
function fileSection({ id, name, contentType, sizeBytes, sha256, visibility, description }: FileRow): string[] {
  return [
    '',
    `### ${span(name)}`,
    '',
    ...facts({
      Id: id,
      'Content type': contentType,
      Bytes: String(sizeBytes),
      'SHA-256': sha256,
      Visibility: visibility,
      Description: description,
    }),
  ]
}

function pageSection(page: ExportedPage): string[] {
  const { id, slug, title, kind, archivedAt, sourceRef, currentRevisionId, body } = page
  return [
    '',
    `### ${span(title)}`,
    '',
    ...facts({
      Id: id,
      Slug: slug,
      Status: archivedAt === null ? 'live' : 'archived',
      File: sourceRef,
    }),
    '',
    ...(currentRevisionId === null
      ? ['It was never published.']
      : body === null
        ? ['Its text is left out for its length.']
        : fence(body, kind)),
  ]
}

function learningSections(learnings: readonly LearningRow[]): string[] {
  let left = longestLearnings
  return learnings.flatMap(({ id, topic, status, bullets, rejectedReason }) => {
    const lines = bullets.flatMap(({ text, sources }) => [
      `- ${span(text)}`,
      ...sources.map((url) => `  - ${span(url)}`),
    ])
    left -= lines.join('').length
    return [
      '',
      `### ${span(topic)}`,
      '',
      ...facts({ Id: id, Status: status, 'Rejected because': rejectedReason }),
      '',
      ...(left >= 0 ? lines : ['Its bullets are left out for their length.']),
    ]
  })
}

function workflowSections(workflows: readonly WorkflowRow[]): string[] {
  let left = longestPrograms
  return workflows.flatMap(({ id, name, title, description, version, retiredAt, source }) => {
    left -= source.length
    return [
      '',
      `### ${span(name)} ${span(title)}`,
      '',
      ...facts({
        Id: id,
        Version: String(version),
        Status: retiredAt === null ? 'active' : 'retired',
        Description: description,
      }),
      '',
      ...(left >= 0 ? fence(source, 'js') : ['The program is left out for its length.']),
    ]
  })
}

function projectSection(project: ProjectRow, agents: Agents): string[] {
  return [
    '',
    `### ${span(project.name)}`,
    '',
    ...facts({
      Id: project.id,
      Status: project.status,
      Prefix: project.prefix,
      Lead: nameOf(project.leadAgentId, agents),
      Visibility: project.visibility,
      Repository: project.repoUrl,
    }),
    ...(project.description === '' ? [] : ['', ...fence(project.description)]),
  ]
}

function taskSections(
  tasks: readonly TaskRow[],
  named: { agents: readonly ListedAgent[]; projects: readonly ProjectRow[] },
): string[] {
  const handles = new Map(named.agents.map((agent) => [agent.id, handleText(agent)]))
  const projects = new Map(named.projects.map((project) => [project.id, project.name]))
  const keys = new Map(tasks.map((task) => [task.id, task.key]))
  const nameIn = (names: ReadonlyMap<string, string>, id: string | null) => id && (names.get(id) ?? id)
  let left = longestDescriptions
  return tasks.flatMap((task) => {
    const description = task.description ?? ''
    left -= description.length
    return [
      '',
      `### ${span(task.key)} ${span(task.title)}`,
      '',
      ...facts({
        Id: task.id,
        Status: task.status,
        Priority: task.priority,
        Assignee: nameIn(handles, task.assigneeAgentId),
        Parent: nameIn(keys, task.parentTaskId),
        Project: nameIn(projects, task.projectId),
        Branch: task.branchName,
        'Pull request': task.pullRequest?.url ?? null,
      }),
      ...(description === ''
        ? []
        : left < 0
          ? ['', 'Its description is left out for its length.']
          : ['', ...fence(description)]),
    ]
  })
}

function nameOf(uuid: string | null, agents: Agents): string | null {
  const agent = uuid === null ? undefined : agents.get(uuid)
  return agent === undefined ? uuid : handleText(agent)
}

function facts(values: Record<string, string | null>): string[] {
  return Object.entries(values).flatMap(([name, value]) => (value === null ? [] : [`- ${name}: ${span(value)}`]))
}

/** A code span with as many backticks as the text needs. */
function span(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  const ticks = '`'.repeat(longestRun(line) + 1)
  const pad = line.startsWith('`') || line.endsWith('`') ? ' ' : ''
  return line === '' ? '(empty)' : `${ticks}${pad}${line}${pad}${ticks}`
}

function fence(text: string, language: 'markdown' | 'csv' | 'js' = 'markdown'): string[] {
  const ticks = '`'.repeat(Math.max(3, longestRun(text) + 1))
  return [`${ticks}${language}`, text, ticks]
}

const longestRun = (text: string): number =>
  (text.match(/`+/g) ?? []).reduce((longest, run) => Math.max(longest, run.length), 0)
