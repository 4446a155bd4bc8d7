import { existsSync, watch, type FSWatcher } from 'node:fs'
import { dirname } from 'node:path'
import type { World } from '../../shared/lib/world.ts'

/** Some runtimes of containers tell nothing of what the machine outside does to a folder. */
const lookMs = 200

/** Resolves once a file is there, which comes as a whole by a rename. */
export async function awaitFile(file: string, world: World): Promise<void> {
  let told = Promise.withResolvers<void>()
  let watcher: FSWatcher | null = null
  try {
    watcher = watch(dirname(file), () => told.resolve())
    watcher.on('error', () => watcher?.close())
  } catch {
    // It is looked for.
  }
  while (!existsSync(file)) {
    await Promise.race([told.promise, world.sleep(lookMs)])
    told = Promise.withResolvers()
  }
  watcher?.close()
}
