import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { McpServer, McpServers } from '../../../shared/runs/mcp-servers.ts'
import { pluginBundlesOf, withPluginFolders } from '../../../shared/runs/plugin-files.ts'
import type { ServerLeftOut } from '../../../shared/runs/filled-servers.ts'
import { keptIn, readKept, readList, WrongBundleError } from '../../skills/kept-bundle.ts'
import type { CopyPlace } from './workspace-skills.ts'

/** The servers of a run, with the folders of the plugins whose programs they are. */
export interface PluginServers {
  servers: McpServers
  leftOut: readonly ServerLeftOut[]
}

const why = 'the files of its plugin could not be brought to this device'

/**
 * Copies the files of plugins that servers need into a folder of the run alone, and names these folders in the servers. A server whose
 * files cannot be had is left out.
 */
export async function withPluginFiles(servers: McpServers, place: CopyPlace | null): Promise<PluginServers> {
  const hashes = pluginBundlesOf(servers)
  if (place !== null && hashes.length > 0) rmSync(place.folder, { recursive: true, force: true })
  const folders = new Map<string, string>()
  for (const hash of place === null ? [] : hashes) {
    await setImmediate()
    const folder = copied(hash, place!)
    if (folder !== null) folders.set(hash, folder)
  }
  const filled: Record<string, McpServer> = {}
  const leftOut: ServerLeftOut[] = []
  for (const [name, server] of Object.entries(servers)) {
    const made = withPluginFolders(server, folders)
    if (made === null) leftOut.push({ name, why })
    else filled[name] = made
  }
  return { servers: filled, leftOut }
}

const folderChars = 16

function copied(hash: string, { brought: { bundles }, folder }: CopyPlace): string | null {
  const target = join(folder, hash.slice(0, folderChars))
  try {
    for (const file of readList(bundles, hash)) {
      const path = join(target, file.path)
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      writeFileSync(path, readKept(bundles, hash, file), { mode: file.executable ? 0o700 : 0o600 })
    }
    return target
  } catch (error) {
    rmSync(target, { recursive: true, force: true })
    // The next run has it brought anew.
    if (error instanceof WrongBundleError) rmSync(keptIn(bundles, hash).root, { recursive: true, force: true })
    return null
  }
}
