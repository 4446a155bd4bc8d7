import { localText, localTexts } from '../arguments/values.ts'
import type { Flow } from '../context/context.ts'
import { usageError } from '../errors/cli-error.ts'
import { sendAndPrint } from '../http/route-call.ts'
import { readBundleFiles, type BundleFile } from '../machine/bundle-files.ts'

/** `skill create`, `skill replace-bundle`: the files come from --file or from a folder. */
export const skillWrite: Flow = async (context) => {
  const { values, resolvePath } = context
  const given = localTexts(values, 'file')
  const dir = localText(values, 'dir')
  if (given.length > 0 === (dir !== null))
    throw usageError('Name the files of the skill with --file path:content, or their folder with --dir.')
  const files = dir === null ? given.map(fileOf) : readBundleFiles(resolvePath(dir))
  return sendAndPrint(context, { body: { bundle: { files } } })
}

function fileOf(text: string): BundleFile {
  const at = text.indexOf(':')
  if (at < 1)
    throw usageError(`\`${text}\` names no file.`, 'Give --file as path:content, for example "SKILL.md:Do it."')
  return { path: text.slice(0, at), content: text.slice(at + 1) }
}
