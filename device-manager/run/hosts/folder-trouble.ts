import { Stats, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'

/** Says why a run cannot work in the folder; null: it can. A folder may lie on a mount that does not answer. */
export async function folderTrouble(path: string): Promise<string | null> {
  try {
    return troubleOf(path, await stat(path))
  } catch (error) {
    return troubleOf(path, error)
  }
}

/** Says why a run cannot work in the home folder, without a limit of time: all that the daemon has lies in there, so it would not work either when the folder does not answer. */
export function homeFolderTrouble(path: string): string | null {
  try {
    return troubleOf(path, statSync(path))
  } catch (error) {
    return troubleOf(path, error)
  }
}

function troubleOf(path: string, found: unknown): string | null {
  if (found instanceof Stats) return found.isDirectory() ? null : `${path} is not a folder.`
  const code = (found as { code?: string }).code
  if (code === 'ENOENT') return `The folder ${path} does not exist on this device.`
  return `The folder ${path} cannot be used: ${found instanceof Error ? found.message : String(found)}`
}
