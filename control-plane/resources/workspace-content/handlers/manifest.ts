import type { ListedAgent } from '../../agents/store.ts'
import { handleText } from '../../agents/present.ts'
import type { FileRow } from '../../files/store.ts'
import type { LearningRow } from '../../learnings/store.ts'
import type { ProjectRow } from '../../projects/store.ts'
import type { TaskRow } from '../../tasks/store.ts'
import type { McpServerRow } from '../../mcp-servers/store.ts'
import type { WikiPageRow } from '../../wiki/store.ts'
import type { WorkflowRow } from '../../workflows/store.ts'
import type { WorkspaceRow } from '../../workspaces/store.ts'
import { mcpServerSection } from './manifest-carried.ts'
import { facts, fence, section, span } from './manifest-text.ts'

// The Markdown of a workspace's export (pure). Text of people is put into code spans or fences, so that it stays text.

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

/** `body` is null when it was left out for its length, or when there is none. */
export type ExportedPage = WikiPageRow & { body: string | null }

/** Returns the lines before the first list. */
export function headOf(workspace: WorkspaceRow, exportedAt: string): string[] {
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
  ]
}

export const headingOf = (title: string, count: number): string[] => [
  '',
  `## ${title} (${count})`,
  ...(count === 0 ? ['', 'None.'] : []),
]

/** The names of others where a section names them. */
export interface Names {
  /** Handles of agents by their UUIDs and by their ids. */
  agents: ReadonlyMap<string, string>
  /** The names of projects by their ids. */
  projects: ReadonlyMap<string, string>
}

/** The lines about one of each kind. Texts are left out once those before them are too long in total. */
export class Sections {
  private readonly names: Names
  private readonly left = {
    instructions: longestInstructions,
    programs: longestPrograms,
    learnings: longestLearnings,
    descriptions: longestDescriptions,
  }

  constructor(names: Names) {
    this.names = names
  }

  agent(agent: ExportedAgent): string[] {
    const isWhole = this.takes('instructions', agent.agentMd?.length ?? 0)
    return agentSection(agent, this.names.agents, isWhole)
  }

  mcpServer(server: McpServerRow): string[] {
    return mcpServerSection(server, server.agentRef && (this.names.agents.get(server.agentRef) ?? server.agentRef))
  }

  project(project: ProjectRow): string[] {
    return projectSection(project, this.names.agents)
  }

  /** `parent`: the key of its parent. */
  task(task: TaskRow, parent: string | null): string[] {
    const isWhole = this.takes('descriptions', task.description?.length ?? 0)
    return taskSection(task, { names: this.names, parent, isWhole })
  }

  workflow(workflow: WorkflowRow): string[] {
    return workflowSection(workflow, this.takes('programs', workflow.source.length))
  }

  learning(learning: LearningRow): string[] {
    const lines = linesOf(learning)
    return learningSection(learning, this.takes('learnings', lines.join('').length) ? lines : null)
  }

  private takes(kind: keyof Sections['left'], length: number): boolean {
    this.left[kind] -= length
    return this.left[kind] >= 0
  }
}

type Agents = Names['agents']

function agentSection(agent: ExportedAgent, agents: Agents, isWhole: boolean): string[] {
  const instructions =
    isWhole && agent.agentMd !== null
      ? ['', 'AGENT.md:', '', ...fence(agent.agentMd)]
      : ['', `AGENT.md is left out for its length; its hash is \`${agent.agentMdHash}\`.`]
  return [
    ...section(agent.name, {
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
      'Reports to': nameOf(agent.reportingToUuid, agents),
    }),
    ...(agent.agentMd === '' ? [] : instructions),
  ]
}

/** The bytes of a file are left out, as they are downloaded one by one. */
export function fileSection({ id, name, contentType, sizeBytes, sha256, visibility, description }: FileRow): string[] {
  return section(name, {
    Id: id,
    'Content type': contentType,
    Bytes: String(sizeBytes),
    'SHA-256': sha256,
    Visibility: visibility,
    Description: description,
  })
}

export function pageSection(page: ExportedPage): string[] {
  const { id, slug, title, kind, archivedAt, sourceRef, currentRevisionId, body } = page
  return [
    ...section(title, {
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

function linesOf({ bullets }: LearningRow): string[] {
  return bullets.flatMap(({ text, sources }) => [`- ${span(text)}`, ...sources.map((url) => `  - ${span(url)}`)])
}

/** `lines` null: they are left out. */
function learningSection({ id, topic, status, rejectedReason }: LearningRow, lines: string[] | null): string[] {
  return [
    ...section(topic, { Id: id, Status: status, 'Rejected because': rejectedReason }),
    '',
    ...(lines ?? ['Its bullets are left out for their length.']),
  ]
}

function workflowSection(workflow: WorkflowRow, isWhole: boolean): string[] {
  const { id, name, title, description, version, retiredAt, source } = workflow
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
    ...(isWhole ? fence(source, 'js') : ['The program is left out for its length.']),
  ]
}

function projectSection(project: ProjectRow, agents: Agents): string[] {
  return [
    ...section(project.name, {
      Id: project.id,
      Status: project.status,
      Prefix: project.prefix,
      Lead: nameOf(project.leadAgentUuid, agents),
      Visibility: project.visibility,
      Repository: project.repoUrl,
    }),
    ...(project.description === '' ? [] : ['', ...fence(project.description)]),
  ]
}

function taskSection(
  task: TaskRow,
  { names, parent, isWhole }: { names: Names; parent: string | null; isWhole: boolean },
): string[] {
  const description = task.description ?? ''
  return [
    '',
    `### ${span(task.key)} ${span(task.title)}`,
    '',
    ...facts({
      Id: task.id,
      Status: task.status,
      Priority: task.priority,
      Assignee: nameOf(task.assigneeAgentRef, names.agents),
      Parent: parent,
      Project: nameOf(task.projectId, names.projects),
      Branch: task.branchName,
      'Pull request': task.pullRequest?.url ?? null,
    }),
    ...(description === ''
      ? []
      : isWhole
        ? ['', ...fence(description)]
        : ['', 'Its description is left out for its length.']),
  ]
}

const nameOf = (id: string | null, names: ReadonlyMap<string, string>): string | null =>
  id === null ? null : (names.get(id) ?? id)
