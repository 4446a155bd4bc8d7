import type { CommandContext } from '../context/context.ts'
import { usageError } from '../errors/cli-error.ts'

/** Reads the value of a secret from standard input, without the newline that files and terminals put at its end. */
export async function readSecret(
  context: Pick<CommandContext, 'readInput' | 'isInteractive' | 'out'>,
): Promise<string> {
  if (context.isInteractive)
    context.out.message('svc: type the value, then Ctrl-D (it is shown as you type; a pipe hides it)')
  const value = (await context.readInput()).toString('utf8').replace(/\r?\n$/, '')
  if (value === '')
    throw usageError('There is no value on standard input.', 'For example: svc secret create --name NAME < value.txt')
  return value
}
