import { createHash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { gunzipSync, gzipSync } from 'node:zlib'
import { extract, pack, type Headers } from 'tar-stream'

/** A file, or a link, of a package: the path within it, without a slash before it. */
export type Entry = { path: string; mode: number; bytes: Buffer } | { path: string; linksTo: string }

/** Files of a package by the mode they have there: what is started, and all others. */
export const modes = { program: 0o755, file: 0o644 } as const

/**
 * A tar archive, packed by gzip, that is the same for the same entries: in the order of their paths, all of root, with one time, and with
 * the folders that they lie in.
 */
export async function tarGz(entries: readonly Entry[], { at, level }: { at: Date; level: number }): Promise<Buffer> {
  const archive = pack()
  const owned = { mtime: at, uid: 0, gid: 0, uname: 'root', gname: 'root' }
  const folders = new Set<string>()
  const bytes = buffer(archive)
  for (const entry of entries.toSorted((a, b) => (a.path < b.path ? -1 : 1))) {
    for (const folder of foldersOf(entry.path)) {
      if (folders.has(folder)) continue
      folders.add(folder)
      await add({ ...owned, name: `${folder}/`, type: 'directory', mode: modes.program })
    }
    if ('linksTo' in entry)
      await add({ ...owned, name: entry.path, type: 'symlink', linkname: entry.linksTo, mode: 0o777 })
    else await add({ ...owned, name: entry.path, mode: entry.mode, size: entry.bytes.length }, entry.bytes)
  }
  archive.finalize()
  return gzipSync(await bytes, { level })

  function add(header: Headers, content?: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      archive.entry(header, content as Buffer, (error) => (error == null ? resolve() : reject(error)))
    })
  }
}

const foldersOf = (path: string): string[] => {
  const names = path.split('/').slice(0, -1)
  return names.map((_, index) => names.slice(0, index + 1).join('/'))
}

/** The files of a packed tar archive, without the first part of their paths (`package/`, `node-v24.../`). */
export async function filesOfTarGz(packed: Buffer): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer>()
  const archive = extract()
  archive.end(gunzipSync(packed))
  for await (const entry of archive) {
    const bytes = await buffer(entry)
    if (entry.header.type === 'file') files.set(entry.header.name.replace(/^[^/]+\//, ''), bytes)
  }
  return files
}

export const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
