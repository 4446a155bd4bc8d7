import { fail } from '../../../shared/api/errors.ts'

/**
 * Fails with `resource_not_found` for an id that names no file of the workspace. This server stores no files, so any id
 * fails.
 */
export function checkAttachments(ids: readonly string[]): void {
  const [unknown] = ids
  if (unknown !== undefined)
    fail('resource_not_found', {
      param: 'attachmentIds',
      message: `There is no file ${unknown} in this workspace.`,
      details: { attachmentId: unknown },
    })
}
