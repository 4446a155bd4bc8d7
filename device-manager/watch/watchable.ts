import { lstat, opendir, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'

/** The kernel tells of no change that another machine, or a program of the user's, makes in these (statfs(2)). */
const remoteTypes = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xfe534d42, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0x01021997, '9p'],
  [0x65735546, 'FUSE'],
  [0x00c36400, 'Ceph'],
  [0x5346414f, 'AFS'],
  [0x73757245, 'Coda'],
])

/** Every entry of a watched folder is looked at once. */
const maxEntries = 2_000

/** Why the path is looked at by the clock alone; null: it can be watched. Rejects where it cannot be reached. */
export async function whyUnwatchable(path: string): Promise<string | null> {
  const found = await lstat(path).catch(() => null)
  const { type } = await statfs(found === null ? dirname(path) : path)
  const remote = process.platform === 'linux' ? remoteTypes.get(type) : undefined
  if (remote !== undefined) return `It lies on a network file system (${remote}).`
  if (found?.isDirectory() !== true) return null
  let entries = 0
  for await (const _ of await opendir(path)) if (++entries > maxEntries) return `It holds over ${maxEntries} entries.`
  return null
}
