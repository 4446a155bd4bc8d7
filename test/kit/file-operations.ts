import files, { type FileHandle } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'

/** Called before each operation that changes files or makes them last. Answers the error with which it fails; null: it is done. */
export type OnOperation = (operation: string) => Error | null

const { mkdir, open, rename, rm } = files

/** Does some work while operations on files of this process (`node:fs/promises`) are told of, those of handles included. */
export async function whileFilesAreTold<Result>(tell: OnOperation, work: () => Promise<Result>): Promise<Result> {
  const told =
    <Args extends unknown[], Answer>(name: string, call: (...args: Args) => Promise<Answer>) =>
    async (...args: Args): Promise<Answer> => {
      const error = tell(name)
      if (error !== null) throw error
      return call(...args)
    }
  const openTold = async (...args: Parameters<typeof open>): Promise<FileHandle> => {
    const handle = await open(...args)
    const write = handle.write.bind(handle) as (...args: unknown[]) => Promise<unknown>
    // Whoever asks for this asks what outlives a process, and that needs none.
    return Object.assign(handle, { write: told('write', write), sync: told('sync', async () => {}) })
  }
  exchange({
    mkdir: told('mkdir', mkdir),
    open: told('open', openTold),
    rename: told('rename', rename),
    rm: told('rm', rm),
  })
  try {
    return await work()
  } finally {
    exchange({ mkdir, open, rename, rm })
  }
}

/** Those who import them by name get these from now on. */
function exchange(calls: Record<string, unknown>): void {
  Object.assign(files, calls)
  syncBuiltinESMExports()
}
