import { realpath, stat } from 'node:fs/promises'
import { isAbsolute, resolve } from 'node:path'
import type { CommandContext, Flow } from '../../context.ts'
import { usageError } from '../../errors/cli-error.ts'
import { callOf, printReply } from '../../http/route-call.ts'
import { thisDevice } from '../../device/this-device.ts'

/**
 * `folder add`: a relative path is taken from here and made absolute; a symlink stays what it is, since it may be moved to
 * another place on purpose. On another device the path must be absolute, because "here" means nothing there.
 */
export const folderAdd: Flow = async (context) => {
  const { values, cwd } = context
  const given = String(values.body?.['rootPath'])
  // Resolved it would be the folder svc was started in: nobody means that by a variable that is not set.
  if (given === '') throw usageError('The path is empty.')
  const named = values.body?.['deviceId']
  if (named !== undefined) {
    if (!isAbsolute(given)) throw usageError('With --device-id the path must be absolute.')
    await add(context, {})
    return 0
  }
  const { publicId } = await thisDevice(context)
  const rootPath = resolve(cwd, given)
  await remarkOn(context, rootPath)
  await add(context, { rootPath, deviceId: publicId })
  return 0
}

async function add(context: CommandContext, body: Record<string, unknown>): Promise<void> {
  const client = await context.connect()
  await printReply(context, (await client.call(callOf(context, { body }))).body)
}

async function remarkOn({ out }: CommandContext, rootPath: string): Promise<void> {
  try {
    const facts = await stat(rootPath)
    if (!facts.isDirectory()) throw usageError(`${rootPath} is not a folder.`)
    const real = await realpath(rootPath)
    if (real !== rootPath) out.message(`svc: ${rootPath} leads to ${real}; it is added as ${rootPath}.`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    throw usageError(`There is no folder ${rootPath}.`)
  }
}
