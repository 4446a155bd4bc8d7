import { realpath, stat } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import type { CommandContext, Flow } from '../../context/context.ts'
import { usageError } from '../../errors/cli-error.ts'
import { sendAndPrint } from '../../http/route-call.ts'
import { listAt, textAt } from '../../replies/fields.ts'
import { thisDevice } from '../../device/this-device.ts'

/**
 * `folder add`: resolves a relative path from the current folder. A symlink stays as it is, since its target may be
 * changed on purpose. On another device the path must be absolute, because the current folder means nothing there.
 */
export const folderAdd: Flow = async (context) => {
  const { values, resolvePath } = context
  const given = String(values.body?.['rootPath'])
  // An empty path would resolve to the current folder, which nobody means by a variable that is not set.
  if (given === '') throw usageError('The path is empty.')
  const named = values.body?.['deviceId']
  if (named !== undefined) {
    if (!isAbsolute(given)) throw usageError('With --device-id the path must be absolute.')
    return sendAndPrint(context)
  }
  const { publicId } = await thisDevice(context)
  const rootPath = resolvePath(given)
  await remarkOn(context, rootPath)
  await remarkOnOthers(context, { rootPath, publicId })
  return sendAndPrint(context, { body: { rootPath, deviceId: publicId } })
}

/** Two folders may be one directory, each with a repo or agents of its own. It is told, since a second one is rarely meant. */
async function remarkOnOthers(
  context: CommandContext,
  { rootPath, publicId }: { rootPath: string; publicId: string },
): Promise<void> {
  const client = await context.connect()
  const { body } = await client.call({ method: 'GET', path: '/api/v1/folders' })
  const real = await realpath(rootPath)
  for (const folder of listAt(body, 'sources')) {
    const path = textAt(folder, 'config', 'rootPath')
    if (path === null || textAt(folder, 'config', 'deviceId') !== publicId) continue
    if (path !== rootPath && (await realpath(path).catch(() => null)) !== real) continue
    context.out.message(
      `svc: ${textAt(folder, 'shortId')} (${textAt(folder, 'displayName')}) is that folder already. Remove the one that you do not need.`,
    )
  }
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
