import { localText } from '../arguments/values.ts'
import type { CommandContext, Flow } from '../context/context.ts'
import { usageError } from '../errors/cli-error.ts'
import { sendAndPrint } from '../http/route-call.ts'
import { readBundleFiles } from '../machine/bundle-files.ts'

/** `plugin install`: from a repository or from a folder. */
export const pluginInstall: Flow = async (context) => {
  const isNamed = context.values.body?.['url'] !== undefined
  if (isNamed === (localText(context.values, 'dir') !== null))
    throw usageError('Name the repository of the plugin, or its folder with --dir.')
  return send(context)
}

/** `plugin update`: from the repository that it was installed from, or from a folder. */
export const pluginUpdate: Flow = (context) => send(context)

function send(context: CommandContext): Promise<void> {
  const dir = localText(context.values, 'dir')
  const bundle = dir === null ? {} : { bundle: { files: readBundleFiles(context.resolvePath(dir), 'plugin') } }
  return sendAndPrint(context, { body: bundle })
}
