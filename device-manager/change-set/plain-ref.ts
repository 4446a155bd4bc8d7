import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/**
 * Writes a ref that nobody else writes as git does where refs are files: beside it under a lock, flushed, renamed.
 * Answers false when that did not go; then git is asked, and says why.
 */
export async function writeRef(commonDir: string, refName: string, commit: string): Promise<boolean> {
  const path = join(commonDir, refName)
  const lock = `${path}.lock`
  let isOurs = false
  try {
    await mkdir(dirname(path), { recursive: true })
    const file = await open(lock, 'wx')
    isOurs = true
    try {
      await file.writeFile(`${commit}\n`)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(lock, path)
    return true
  } catch {
    if (isOurs) await rm(lock, { force: true }).catch(() => undefined)
    return false
  }
}
