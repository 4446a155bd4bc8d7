import { dirname, isAbsolute } from 'node:path'
import type { CommandContext, Flow } from '../context/context.ts'
import { usageError } from '../errors/cli-error.ts'
import type { Client } from '../calls/client.ts'
import { pathSegment } from '../http/path-segment.ts'
import { homeHere, isFolderHere, linksHere, linksNowhere } from '../machine/links.ts'
import { devicePlaces, loginPath, serverPlaces } from '../machine/paths.ts'
import { listAt, textAt } from '../replies/fields.ts'
import { permissionSettings } from './permission-settings.ts'
import { callFrom } from './permissions-check-call.ts'
import { explain, type Explanation } from '../../shared/permissions/explain.ts'
import { PathLookup } from '../../shared/permissions/path-lookup.ts'
import { reachOf } from '../../shared/permissions/reach.ts'
import { type HarnessName, harnesses, harnessFactsOf } from '../../shared/runs/harnesses.ts'
import { localText } from '../arguments/values.ts'

/** `agent permissions check`: what a run of the agent would answer to a tool call, by the engine that its run hosts use. */
export const permissionsCheck: Flow = async (context) => {
  const { out, values, world } = context
  const call = await callFrom(context)
  const client = await context.connect()
  const ref = pathSegment(localText(values, 'agent') ?? 'me')
  const { body: agent } = await client.call({ method: 'GET', path: `/api/v1/agents/${ref}` })
  const { permissions, protocol } = await permissionSettings(client, { agent, ref })
  const where = await placeOf(context, { client, agent })
  const isHere = isFolderHere(where.cwd)
  const lookup = new PathLookup(world, isHere ? linksHere() : linksNowhere)
  const facts = { cwd: where.cwd, homeDir: homeHere(), ownFolders: await ownFolders(context), svcProgram: 'svc' }
  const place = await lookup.placeOf({ ...facts, permissions })
  const explained = explain(permissions, place, { ...call, ...(await reachOf(call, { permissions, place, lookup })) })
  const shown = {
    object: 'permission_check',
    agent: textAt(agent, 'handle'),
    ...explained,
    tool: call.name,
    input: call.input,
    ...where,
    paths: isHere ? 'links_followed' : 'as_written',
    note: noteOf(agent, protocol),
  }
  if (out.format === 'json') await out.result(shown)
  else out.text(linesOf(shown).join('\n'))
}

type Where = { cwd: string; cwdFrom: 'flag' | 'folder' | 'current' }

/** A run works in the agent's folder; without one, what is judged is this folder. */
async function placeOf(
  { values, resolvePath }: CommandContext,
  { client, agent }: { client: Client; agent: unknown },
): Promise<Where> {
  const given = localText(values, 'cwd')
  if (given === '') throw usageError('--cwd is empty.')
  if (given !== null) return { cwd: resolvePath(given), cwdFrom: 'flag' }
  const folderId = textAt(agent, 'defaultFolderId')
  // Folders are people's; a run stands in its own.
  if (folderId === null || client.caller.source === 'run') return { cwd: resolvePath(''), cwdFrom: 'current' }
  const { body: folders } = await client.call({ method: 'GET', path: '/api/v1/folders' })
  const folder = listAt(folders, 'sources').find((row) => textAt(row, 'shortId') === folderId)
  const root = textAt(folder, 'rootPath')
  return root !== null && isAbsolute(root)
    ? { cwd: root, cwdFrom: 'folder' }
    : { cwd: resolvePath(''), cwdFrom: 'current' }
}

/** The folders of svc that no file tool of a run reaches, as they are on this machine. */
async function ownFolders({ env }: CommandContext): Promise<string[]> {
  const [device, login, server] = [await devicePlaces(env), await loginPath(env), await serverPlaces(env)]
  return [...new Set([device.dir, dirname(login), server.dir])]
}

function noteOf(agent: unknown, protocol: string | null): string | null {
  const name = textAt(agent, 'harness') ?? ''
  if (!Object.hasOwn(harnesses, name)) return null
  if (harnessFactsOf({ harness: name as HarnessName, protocol }).callsTools) return null
  return `Runs of the harness ${name} call no tools, so no rule holds for what they do.`
}

function linesOf(shown: Explanation & Where & { tool: string; paths: string; note: string | null }): string[] {
  const from = { flag: 'as given', folder: "the agent's folder", current: 'this folder' }[shown.cwdFrom]
  const by = {
    rule: `rule ${shown.rule} of the ${shown.list} list`,
    mode: `mode ${shown.mode}`,
    own_svc: "the run's own svc",
    doubt: 'the call cannot be let through',
  }[shown.by]
  const links =
    shown.paths === 'as_written' ? '; it cannot be looked at on this machine, so paths are judged as written' : ''
  return [
    `${shown.answer}: ${shown.tool} (${by})`,
    shown.reason,
    `Judged in ${shown.cwd} (${from}${links}).`,
    ...(shown.note === null ? [] : [shown.note]),
  ]
}
