import { contract } from '../../../shared/api/index.ts'
import type { AnyRoute } from '../../../shared/api/route.ts'

/** Routes as clients reach them: one entry for each path and alias. */
export interface Reach {
  route: AnyRoute
  path: string
  label: string
}

export const reaches: readonly Reach[] = contract.flatMap((route) =>
  [route.path, ...route.aliases].map((path) => ({ route, path, label: `${route.method} ${path}` })),
)

/** Well-formed ids that name nothing, by the parameter that carries them. */
export const unknownIds: Readonly<Record<string, string>> = {
  agentId: 'agt_0000000000000000',
  automationId: 'aut_0000000000000000',
  companyId: '00000000-0000-4000-8000-00000000000e',
  taskId: 'tsk_0000000000000000',
  itemId: 'chk_0000000000000000',
  dependencyId: 'tsk_0000000000000000',
  repoId: '00000000-0000-4000-8000-00000000000f',
  runId: 'run_0000000000000000',
  approvalId: 'apr_0000000000000000',
  secretId: 'sec_0000000000000000',
  eventId: '00000000-0000-8000-8000-000000000001',
  id: '00000000-0000-4000-8000-000000000009',
  // `{id}` of a resource whose ids have a form of their own, by the first word of the path.
  'conversations.id': 'cnv_0000000000000000',
  'messages.id': 'msg_0000000000000000',
  'questions.id': 'qst_0000000000000000',
  'tasks.id': 'tsk_0000000000000000',
  ref: 'usr_0000000000000000',
  shortId: 'fs_0000000000000000',
  workspaceId: '00000000-0000-4000-8000-00000000000a',
  slug: 'nobodys-slug',
  userId: 'usr_0000000000000000',
  projectId: '00000000-0000-4000-8000-00000000000b',
  token: 'unknown-invite',
  revisionId: '00000000-0000-4000-8000-00000000000c',
  entryId: '00000000-0000-4000-8000-00000000000d',
}

/** Routes that are written down to answer 501, whoever calls with whatever. */
export const isUnavailable = (route: AnyRoute): boolean => route.plainErrors.includes('plain.members_unavailable')

/** The path with its parameters filled in. Fails for a parameter this test knows nothing of, so that none is left out. */
export function fill(path: string, values: Readonly<Record<string, string>>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[`${path.split('/')[1]}.${name}`] ?? values[name]
    if (value === undefined) throw new Error(`no value for {${name}} of ${path}`)
    return value
  })
}
