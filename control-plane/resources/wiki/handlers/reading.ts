import { fail } from '../../../../shared/api/errors.ts'
import type { PageKind } from '../../../../shared/api/wiki-fields.ts'
import { byteLength } from '../../../../shared/lib/byte-length.ts'
import { callerKey, type Caller } from '../../../http/callers.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import type { PageReading } from '../read-page.ts'
import type { PublishFlaw } from '../own/rules.ts'

/**
 * Reads a body in a worker: what it links to, and what checks it does not pass. Fails with `wiki_publish_failed` when that takes
 * too much.
 */
export async function readingOf(
  { kind, body }: { kind: PageKind; body: string },
  { caller, costly }: { caller: Caller } & Pick<ResourceDependencies, 'costly'>,
): Promise<PageReading> {
  const owner = { workspaceId: caller.workspaceId, caller: callerKey(caller), bytes: byteLength(body) }
  const answer = await costly.run('wiki.read', { kind, body }, owner)
  if (answer.kind === 'done') return answer.value
  const what = {
    time: 'takes too much time to be read',
    memory: 'takes too much memory to be read',
    crash: 'cannot be read',
  }
  return refusePublish([{ check: 'wiki_publish_failed', message: `The body ${what[answer.why]}.` }])
}

/** Answers with the first of these; `details.failed` names all. */
export function refusePublish(flaws: readonly [PublishFlaw, ...PublishFlaw[]]): never {
  const [{ check, message }] = flaws
  const failed = flaws.map((flaw) => ({ code: flaw.check, message: flaw.message }))
  return fail(check, {
    param: check === 'wiki_stale_base_revision' ? 'baseRevisionId' : 'body',
    message,
    details: { failed },
  })
}

export function refuseIfAny([first, ...others]: readonly PublishFlaw[]): void {
  if (first !== undefined) refusePublish([first, ...others])
}
