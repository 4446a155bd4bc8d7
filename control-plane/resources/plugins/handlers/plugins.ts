import type { BundleId } from '../../../../shared/lib/ids.ts'
import { fail, failField } from '../../../../shared/api/errors.ts'
import { beforeOf, pageByTime, timeAndId } from '../../../../shared/api/paging.ts'
import { pluginId, pluginLimits, type Plugin } from '../../../../shared/api/plugin-fields.ts'
import { pluginRoutes } from '../../../../shared/api/plugins.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'
import { changedRow } from '../../../db/changed-row.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { answer, implement, prepared, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { listMcpServersOfPlugin } from '../../mcp-servers/store.ts'
import { raisePlatformChange } from '../../platform-changes/steps/raise.ts'
import { keepBundle, shownStaged, type NewBundle } from '../../skills/steps/bundle.ts'
import { listSkillsOfPlugin } from '../../skills/store.ts'
import { presentPlugin, presentPluginSummary } from '../own/present.ts'
import {
  factsOf,
  placeParts,
  placeRoot,
  removeWithParts,
  stagedInstall,
  stagedPlugin,
  type FoundPlugin,
} from '../steps/own/place.ts'
import {
  countPlugins,
  findInstalledPlugin,
  insertPlugin,
  listPlugins,
  replacePlugin,
  type InstalledPlugin,
} from '../store.ts'
import { findForInstall, findForUpdate, type Dependencies } from './find.ts'

type Routes = typeof pluginRoutes
type Writing = Pick<HandlerInput<Routes['enable']>, 'db' | 'world' | 'client' | 'caller'>
/** `enabled`: whether runs have it at once. */
type FoundInstall = FoundPlugin & { enabled: boolean }

export function pluginHandlers(deps: Dependencies): ImplementedRoute[] {
  const giveUp = async ({ skills, root }: FoundPlugin): Promise<void> => {
    for (const bundle of [...skills, root])
      if (bundle !== null && 'blobId' in bundle) await deps.blobs.giveUp(bundle.blobId)
  }
  return implement(pluginRoutes, {
    list,

    install: prepared<Routes['install'], FoundInstall>({
      before: async (input) => ({ ...(await findForInstall(input, deps)), enabled: input.body.enabled }),
      handle: install,
      giveUp,
      staged: stagedInstall,
    }),

    async get({ db, caller, params }) {
      return shown(db, await lookUpPlugin(db, caller, params.pluginId))
    },

    enable: (input) => turn(input, true),
    disable: (input) => turn(input, false),

    update: prepared<Routes['update'], FoundPlugin>({
      before: async (input) =>
        findForUpdate(input, deps, await lookUpPlugin(input.db, input.caller, input.params.pluginId)),
      handle: update,
      giveUp,
      staged: stagedPlugin,
    }),

    remove,
  })
}

const listCursor = timeAndId(pluginId)

async function list({ db, caller: { workspaceId }, query }: HandlerInput<Routes['list']>) {
  const { limit, enabled, q } = query
  const rows = await listPlugins(db, {
    workspaceId,
    limit,
    ...withoutUndefined({ enabled, q }),
    ...beforeOf(query, listCursor),
  })
  return pageByTime(rows, limit, presentPluginSummary)
}

const lookUpPlugin = async (db: Db, { workspaceId }: Caller, reference: string): Promise<InstalledPlugin> =>
  (await findInstalledPlugin(db, workspaceId, reference)) ?? fail('plugin_not_found', { param: 'pluginId' })

async function shown(db: Db, plugin: InstalledPlugin): Promise<Plugin> {
  const skills = await listSkillsOfPlugin(db, plugin.workspaceId, plugin.id)
  return presentPlugin(plugin, { skills, servers: await listMcpServersOfPlugin(db, plugin.id) })
}

async function install(input: HandlerInput<Routes['install']>, found: FoundInstall) {
  const { db, caller, world } = input
  const { workspaceId } = caller
  const { name, enabled } = found
  if ((await findInstalledPlugin(db, workspaceId, name)) !== null)
    fail('duplicate_plugin_name', { message: `The workspace has the plugin ${name}. Update or remove it.` })
  if ((await countPlugins(db, workspaceId)) >= pluginLimits.plugins)
    failField('url', `A workspace has at most ${pluginLimits.plugins} plugins.`)
  if (caller.kind === 'agent') return askFirst(input, found, { routeId: pluginRoutes.install.id, params: {} })
  const at = world.now()
  const plugin: InstalledPlugin = {
    id: world.id('plug_'),
    workspaceId,
    name,
    enabled,
    ...factsOf(found),
    bundleId: await placeRoot({ db, world }, { workspaceId, bundleId: null }, found),
    installedByRef: caller.personRef,
    version: 1,
    createdAt: at,
    updatedAt: at,
  }
  await insertPlugin(db, plugin)
  await placeParts({ db, world, caller }, plugin, found)
  return answer(201, await shown(db, plugin))
}

async function update(input: HandlerInput<Routes['update']>, found: FoundPlugin) {
  const { db, caller, world, params } = input
  const before = await lookUpPlugin(db, caller, params.pluginId)
  if (found.name !== before.name)
    fail('invalid_plugin', { message: `These are the files of the plugin ${found.name}. Install that.` })
  if (caller.kind === 'agent')
    return askFirst(input, found, { routeId: pluginRoutes.update.id, params: { pluginId: before.id } })
  const bundleId = await placeRoot({ db, world }, before, found)
  const after = changedRow(before, { ...factsOf(found), bundleId }, world.now())
  await replacePlugin(db, before, after)
  await placeParts({ db, world, caller }, after, found)
  return shown(db, after)
}

async function turn(input: Writing & Pick<HandlerInput<Routes['enable']>, 'params'>, enabled: boolean) {
  const { db, caller, world, params } = input
  const before = await lookUpPlugin(db, caller, params.pluginId)
  if (caller.kind === 'agent') {
    const { id: routeId } = enabled ? pluginRoutes.enable : pluginRoutes.disable
    return raisePlatformChange({ ...input, body: null }, { caller, routeId, params: { pluginId: before.id } })
  }
  const after = changedRow(before, { enabled }, world.now())
  await replacePlugin(db, before, after)
  return shown(db, after)
}

async function remove(input: HandlerInput<Routes['remove']>) {
  const { db, caller, world, params } = input
  const plugin = await lookUpPlugin(db, caller, params.pluginId)
  if (caller.kind === 'agent') {
    const change = { caller, routeId: pluginRoutes.remove.id, params: { pluginId: plugin.id } }
    return raisePlatformChange({ ...input, body: null }, change)
  }
  await removeWithParts({ db, world }, plugin)
  return undefined
}

/** Stages what an agent asks for: the approval shows its commit, files and hashes, and approving takes exactly that. */
async function askFirst(
  input: Writing,
  found: FoundPlugin,
  change: { routeId: string; params: Record<string, string> },
) {
  const { db, caller, world } = input
  if (caller.kind !== 'agent') return fail('platform_change_requires_run')
  const kept: { id: BundleId; bundle: NewBundle }[] = []
  const staged = (bundle: NewBundle) => {
    const id = world.id('skb_')
    kept.push({ id, bundle })
    return shownStaged(id, bundle)
  }
  const skills = found.skills.flatMap((skill) => {
    if (!('blobId' in skill)) return []
    const { slug, name, description, ...bundle } = skill
    return [{ slug, name, description, bundle: staged(bundle) }]
  })
  const root = found.root !== null && 'blobId' in found.root ? { bundle: staged(found.root) } : null
  const raised = await raisePlatformChange({ ...input, body: { ...found, skills, root } }, { caller, ...change })
  const { workspaceId } = caller
  for (const { id, bundle } of kept)
    await keepBundle({ db, world, workspaceId }, bundle, { id, changeId: raised.body.approvalId })
  return raised
}
