import type { CommandContext, Flow } from '../../context/context.ts'
import { ApiFailure, usageError } from '../../errors/cli-error.ts'
import { callOf, withRun } from '../../http/route-call.ts'
import { leftOutOf, namesOf, narrowed, paintedPatch, statOf, visible } from '../../output/patch.ts'
import { fieldAt, listAt, textAt } from '../../replies/fields.ts'

/** `run diff`: what the run changed, as a patch. Into a pipe it goes byte by byte, as `git apply` takes it. */
export const runDiff: Flow = async (context) => {
  const { out, values } = context
  if (values.local['stat'] === true && values.local['name-only'] === true)
    throw usageError('--stat and --name-only cannot be given together.')
  const client = await context.connect()
  const found = await client.call(callOf(context)).catch((error: unknown) => {
    if (error instanceof ApiFailure && reasons.has(error.code ?? '')) return error
    throw error
  })
  if (found instanceof ApiFailure) return withoutChangeSet(context, found)
  const within = (values.local['path'] ?? []) as readonly string[]
  const changeSet = narrowed(found.body, within)
  if (out.isJsonWanted) return out.result(changeSet)
  // First, since a pager would cover what is said after it.
  for (const remark of remarksOn(changeSet)) out.message(`svc: ${remark}`)
  if (listAt(changeSet, 'files').length === 0)
    return out.message(`svc: the run changed nothing${within.length === 0 ? '' : ` in ${within.join(', ')}`}.`)
  if (values.local['name-only'] === true) return out.longText(namesOf(changeSet).map(visible).join('\n'))
  if (values.local['stat'] === true) return out.longText(statOf(changeSet, out).join('\n'))
  const diff = textAt(changeSet, 'diff') ?? ''
  if (diff === '') return
  if (out.isTerminal) return out.longText(paintedPatch(visible(diff), out.paint))
  out.exact(paintedPatch(diff, out.paint))
}

/** Those of the route itself: there is a run, and no diff of it. */
const reasons: ReadonlySet<string> = new Set(['source_unknown', 'repo_unavailable', 'too_large', 'diff_unavailable'])

function withoutChangeSet(context: CommandContext, failure: ApiFailure): number {
  const { out, values } = context
  const status = out.failure(failure)
  const { runId } = withRun(context, values.params)
  if (out.format === 'table')
    out.message(
      `What there is of the run: \`svc run read ${runId} --full\` (what it did), \`svc why ${runId}\` (how it stands).`,
    )
  return status
}

function remarksOn(changeSet: unknown): string[] {
  const shared = listAt(changeSet, 'sharedWith').filter((runId) => typeof runId === 'string')
  const leftOut = leftOutOf(changeSet)
  return [
    ...(fieldAt(changeSet, 'live') === true ? ['the run still works; this is what it has changed until now.'] : []),
    ...(shared.length === 0
      ? []
      : [`changes of others may be among these: ${shared.join(', ')} worked in the folder at the same time.`]),
    ...(leftOut.length === 0 ? [] : [`not in the diff, since too large or not readable: ${leftOut.join(', ')}`]),
  ]
}
