import { fail } from '../../../../shared/api/errors.ts'
import { pluginLimits } from '../../../../shared/api/plugin-fields.ts'
import type { pluginRoutes } from '../../../../shared/api/plugins.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'
import type { BeforeInput } from '../../../http/implement.ts'
import { readSource } from '../../../repo-source/source.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { decodeFiles, pathsFlaw } from '../../skills/bundle.ts'
import { withRepo } from '../../skills/steps/repo.ts'
import type { FoundPlugin } from '../steps/own/place.ts'
import { filesOf, takePlugin } from '../steps/own/take.ts'
import type { InstalledPlugin } from '../store.ts'

// Finds the plugin that a request names, before its transaction: in the files that it sends, or in a repository.

export type Dependencies = Pick<ResourceDependencies, 'blobs' | 'costly' | 'repoSources'>
type Install = BeforeInput<typeof pluginRoutes.install>
type Update = BeforeInput<typeof pluginRoutes.update>
type Asking = Pick<Install, 'caller' | 'signal'>
type Bundle = NonNullable<Install['body']['bundle']>

const codes = {
  refused: 'invalid_plugin_source',
  noFolder: 'invalid_plugin_source',
  unreadable: 'plugin_source_unreadable',
} as const

export async function findForInstall(input: Install, deps: Dependencies): Promise<FoundPlugin> {
  const { url, ref, subdir, bundle } = input.body
  if (bundle === undefined && url === undefined)
    return fail('invalid_plugin_source', { param: 'url', message: 'Name a repository, or send files.' })
  if (bundle === undefined) return fromRepo(input, withoutUndefined({ url, ref, subdir }) as Named, deps)
  const other = Object.keys(withoutUndefined({ url, ref, subdir }))[0]
  if (other !== undefined)
    return fail('invalid_plugin_source', { param: other, message: 'Files are sent without one.' })
  return fromFiles(input, bundle, deps)
}

export async function findForUpdate(input: Update, deps: Dependencies, plugin: InstalledPlugin): Promise<FoundPlugin> {
  const { ref, bundle } = input.body
  if (bundle !== undefined && ref !== undefined)
    return fail('invalid_plugin_source', { param: 'ref', message: 'Files are sent without one.' })
  if (bundle !== undefined) return fromFiles(input, bundle, deps)
  if (plugin.repoUrl === null)
    return fail('invalid_plugin_source', { param: 'bundle', message: 'It is of no repository: send its files.' })
  const named = { url: plugin.repoUrl, ref: ref ?? plugin.repoRef ?? undefined, subdir: plugin.repoPath ?? undefined }
  return fromRepo(input, withoutUndefined(named) as Named, deps)
}

interface Named {
  url: string
  ref?: string
  subdir?: string
}

async function fromRepo({ caller, signal }: Asking, named: Named, deps: Dependencies): Promise<FoundPlugin> {
  const { source, flaw } = readSource(named)
  if (source === null) return fail('invalid_plugin_source', flaw)
  const { workspaceId } = caller
  const fetching = { repoSources: deps.repoSources, workspaceId, signal, codes }
  return withRepo(source, fetching, async (repo) => {
    const resolvedSha = await repo.sha()
    const taken = await takePlugin(repo, { caller, deps, param: 'url' })
    return { ...taken, source: { url: source.url.href, ref: source.ref, subdir: source.subdir, resolvedSha } }
  })
}

const noRepo = { url: null, ref: null, subdir: null, resolvedSha: null } as const

async function fromFiles({ caller }: Asking, bundle: Bundle, deps: Dependencies): Promise<FoundPlugin> {
  const { files, flaw } = await decodeFiles(bundle.files, pluginLimits.files)
  if (files === null) return fail('invalid_plugin', flaw)
  const wrong = pathsFlaw(files.map(({ path }) => path))
  if (wrong !== null) return fail('invalid_plugin', wrong)
  return { ...(await takePlugin(filesOf(files), { caller, deps, param: 'bundle.files' })), source: noRepo }
}
