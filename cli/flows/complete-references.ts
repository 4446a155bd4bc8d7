import type { ReferenceKind } from '../../shared/api/references.ts'
import type { CommandContext } from '../context/context.ts'
import { quickRead } from '../http/quick-read.ts'
import { completionCache } from '../machine/completion-cache.ts'
import { fieldAt, listAt, textAt } from '../replies/fields.ts'
import { callerOf } from '../sign-in/caller.ts'

// Words that the server knows, for the shell: it waits for them while somebody types, so they come soon or not at all, and nothing is said.

export interface Candidate {
  word: string
  description: string
}

/** From the start of the process to its last word. */
const wholeMs = 300
/** What printing takes, and the end of the process. */
const restMs = 40
/** So long what was found a moment ago is taken without asking. */
const freshMs = 15_000
const maxBytes = 1024 * 1024

type Path = readonly string[]
interface Source {
  path: string
  /** Key of the list in the reply. */
  key?: string
  word: Path
  /** What the shell shows beside the word. */
  told: readonly Path[]
}

export const referenceSources: Record<ReferenceKind, Source> = {
  agent: { path: 'agents?limit=100', word: ['handle'], told: [['name'], ['status']] },
  approval: { path: 'approvals?limit=50', word: ['id'], told: [['status'], ['gatedThing', 'name']] },
  automation: { path: 'automations?limit=100', word: ['name'], told: [['status'], ['id']] },
  conversation: { path: 'conversations?limit=50', word: ['id'], told: [['title']] },
  device: { path: 'devices', key: 'devices', word: ['displayName'], told: [['hostname'], ['platform']] },
  file: { path: 'files?limit=100', word: ['name'], told: [['contentType'], ['createdAt']] },
  learning: { path: 'learnings?limit=50', word: ['id'], told: [['status'], ['topic']] },
  plugin: { path: 'plugins', word: ['name'], told: [['version'], ['description']] },
  project: { path: 'projects?limit=100', word: ['id'], told: [['name'], ['status']] },
  question: { path: 'questions?limit=50', word: ['id'], told: [['status'], ['prompt']] },
  run: { path: 'runs?limit=50', word: ['id'], told: [['agent', 'handle'], ['status'], ['task', 'key']] },
  secret: { path: 'secrets', word: ['id'], told: [['name']] },
  skill: { path: 'skills', word: ['slug'], told: [['name']] },
  task: { path: 'tasks?limit=100', word: ['key'], told: [['status'], ['title']] },
  webhook: { path: 'webhooks', word: ['id'], told: [['status'], ['url']] },
  'wiki page': { path: 'wiki/pages?limit=100', word: ['slug'], told: [['title']] },
  workflow: { path: 'workflows/records?limit=100', word: ['name'], told: [['title']] },
  'workflow run': { path: 'workflows/runs?limit=50', word: ['id'], told: [['workflow'], ['status']] },
}

/** The words for a reference: of the server where it answers in time, else those that were found a moment ago, else none. */
export async function referenceCandidates(
  { env, world }: Pick<CommandContext, 'env' | 'world'>,
  { kind, workspaceId }: { kind: ReferenceKind; workspaceId: string | null },
  { variables = process.env, withinMs = leftMs() }: { variables?: NodeJS.ProcessEnv; withinMs?: number } = {},
): Promise<Candidate[]> {
  try {
    const caller = await callerOf(env, workspaceId)
    const place = [caller.server, caller.token, caller.workspaceId ?? caller.ownWorkspaceId ?? '', kind]
    const cache = completionCache(variables, place, world.now())
    const kept = cache.find()
    if (kept !== null && kept.ageMs < freshMs) return candidatesFrom(kept.value)
    const { path, ...source } = referenceSources[kind]
    const body = await quickRead(caller, `/api/v1/${path}`, { withinMs, maxBytes })
    if (body === undefined) return kept === null ? [] : candidatesFrom(kept.value)
    const found = listAt(body, source.key ?? 'data').flatMap((row) => candidateOf(row, kind, source))
    cache.keep(found)
    return found
  } catch {
    // Not signed in, or anything else: whoever types is told by the command itself.
    return []
  }
}

const leftMs = () => Math.max(1, wholeMs - restMs - process.uptime() * 1000)

/** Whatever could steer a terminal, or end a line of words, is no word. */
const unfit = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u

function candidateOf(row: unknown, kind: ReferenceKind, { word: at, told }: Omit<Source, 'path'>): Candidate[] {
  const text = textAt(row, ...at)
  if (text === null || text === '' || text.length > 200 || unfit.test(text) || text.startsWith('-')) return []
  const word = kind === 'agent' && !text.startsWith('@') ? `@${text}` : text
  const description = told
    .map((path) => fieldAt(row, ...path))
    .filter((fact) => typeof fact === 'string' && fact !== '')
    .join(', ')
  return [{ word, description: description.replaceAll(new RegExp(unfit, 'gu'), ' ').slice(0, 80) }]
}

/** The file is this user's, but may be of another release. */
const candidatesFrom = (kept: unknown): Candidate[] =>
  (Array.isArray(kept) ? (kept as unknown[]) : []).flatMap((one) => {
    const [word, description] = [textAt(one, 'word'), textAt(one, 'description')]
    return word === null || unfit.test(word) || unfit.test(description ?? '')
      ? []
      : [{ word, description: description ?? '' }]
  })
