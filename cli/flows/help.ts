import { version as programVersion } from '../../shared/lib/version.ts'
import { matchCommand } from '../arguments/parse.ts'
import { inOurWords } from '../arguments/habits.ts'
import { allCommands } from '../arguments/commands.ts'
import type { Flow } from '../context/context.ts'
import { usageError } from '../errors/cli-error.ts'
import { exitCodesText, helpOf, overviewOf } from '../arguments/help.ts'

export const help: Flow = async ({ out, positionals }) => {
  const commands = await allCommands()
  const words = positionals['topic'] ?? []
  const topic = words.join(' ')
  if (topic === 'exit-codes') out.text(exitCodesText())
  else if (topic === '' || commands.some((command) => command.name.startsWith(`${topic} `))) {
    await out.longText(overviewOf(commands, topic, out.width))
  } else {
    const meant = inOurWords(words).map((line) => line.join(' '))
    const group = meant.find((line) => commands.some((command) => command.name.startsWith(`${line} `)))
    if (group !== undefined) return out.longText(overviewOf(commands, group, out.width))
    const match =
      [words, ...inOurWords(words)].map((line) => matchCommand(commands, line)).find((each) => each !== null) ?? null
    if (match === null || match.rest.length > 0)
      throw usageError(`There is no command \`svc ${topic}\`.`, 'Type `svc help`.')
    await out.longText(await helpOf(match.command, out.width))
  }
}

export const version: Flow = async ({ out }) => {
  out.text(programVersion)
}
