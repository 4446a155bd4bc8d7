import type { Flow } from '../../context/context.ts'
import { usageError } from '../../errors/cli-error.ts'
import { sendAndPrint } from '../../http/route-call.ts'
import { readFileOrInput } from '../../machine/input.ts'
import { jsonFrom, localText } from '../../arguments/values.ts'

/** `run output`: records the run's typed output, from --data, --file or standard input. */
export const runOutput: Flow = async (context) => {
  const { values } = context
  const file = localText(values, 'file')
  const hasData = values.body !== undefined && 'data' in values.body
  if (hasData === (file !== null)) {
    throw usageError(
      'Give the output with --data or with --file (`-`: standard input).',
      'For example: svc run output --file result.json',
    )
  }
  const data = hasData
    ? values.body!['data']
    : jsonFrom((await readFileOrInput(file!, context)).toString('utf8'), file!)
  return sendAndPrint(context, { body: { data } })
}
