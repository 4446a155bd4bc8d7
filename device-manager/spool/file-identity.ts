import { statSync } from 'node:fs'
import { sqliteFiles } from '../setup/private-file.ts'
import { SpoolReplacedError } from './errors.ts'

const inodeOf = (path: string): number | null => statSync(path, { throwIfNoEntry: false })?.ino ?? null

/**
 * Which files an open database consists of. SQLite keeps all of them from the first access to the last close, so a change is
 * somebody else's: rows would go into a log that nobody reads, beside processes that lock another file.
 */
export class FileIdentity {
  readonly #inodes: ReadonlyMap<string, number>

  /** Of a database in WAL mode that was read. Throws SpoolReplacedError when a file of it is gone already. */
  constructor(path: string) {
    const inodes = new Map<string, number>()
    for (const file of [path, ...sqliteFiles(path)]) {
      const inode = inodeOf(file)
      if (inode === null) throw new SpoolReplacedError(`${file} is gone`)
      inodes.set(file, inode)
    }
    this.#inodes = inodes
  }

  /** The first file that is not the one it was; null: all are. */
  findChanged(): string | null {
    for (const [file, inode] of this.#inodes) if (inodeOf(file) !== inode) return file
    return null
  }
}
