// Lines of gh whose command svc has, and whose flags it spells otherwise. Loaded for a line whose flags cannot be read.

type Words = readonly string[]

/** What stands in the place of a flag with its value, or of one without. */
type Rewrite = (value: string) => Words | null
interface Habit {
  flags: Words
  /** Such a flag has a value behind it. */
  takesValue?: boolean
  /** null: the value is one of svc. */
  becomes: Rewrite
}

const without: Rewrite = () => []
const drop = (...flags: string[]): Habit => ({ flags, becomes: without })
const renamed = (to: string, ...flags: string[]): Habit => ({
  flags,
  takesValue: true,
  becomes: (value) => [`--${to}=${value}`],
})
const instead = (words: Words, ...flags: string[]): Habit => ({ flags, becomes: () => words })
const statuses = (known: Readonly<Record<string, Words>>): Habit => ({
  flags: ['--status', '--state', '-s'],
  takesValue: true,
  becomes: (value) => (Object.hasOwn(known, value) ? known[value]!.map((status) => `--status=${status}`) : null),
})

const bodyFile = renamed('description-file', '--body-file', '-F')

const habits: Readonly<Record<string, readonly Habit[]>> = {
  login: [instead(['--token=-'], '--with-token'), instead(['--browser'], '--web', '-w')],
  'task list': [statuses({ closed: ['done', 'cancelled'], all: [] })],
  'task create': [bodyFile],
  'task update': [bodyFile],
  'task get': [instead(['--include=comments'], '--comments', '-c')],
  'run list': [
    statuses({
      failure: ['failed'],
      success: ['succeeded'],
      in_progress: ['running'],
      completed: ['succeeded', 'failed', 'cancelled'],
    }),
  ],
  // The exit status tells it anyway.
  'run watch': [drop('--exit-status', '--compact')],
  'run retry': [drop('--failed')],
  'workflow start': [renamed('input', '-f', '-F', '--field', '--raw-field')],
}

/** The whole line that is meant; null: not this one. */
export function meantLine(command: string, rest: Words): string[] | null {
  const moved = elsewhere(command, rest)
  if (moved !== null) return moved
  const own = Object.hasOwn(habits, command) ? habits[command]! : []
  const line: string[] = []
  let isOther = false
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at]!
    if (word === '--') {
      line.push(...rest.slice(at))
      break
    }
    const [name = '', ...more] = word.split('=')
    const habit = own.find(({ flags }) => flags.includes(name))
    const isBound = more.length > 0
    const value = isBound ? more.join('=') : (rest[at + 1] ?? '')
    const becomes = habit === undefined || (isBound && habit.takesValue !== true) ? null : habit.becomes(value)
    if (becomes === null) {
      line.push(word)
      continue
    }
    isOther = true
    line.push(...becomes)
    if (habit?.takesValue === true && !isBound) at++
  }
  return isOther ? [...command.split(' '), ...line] : null
}

/** Lines of which one flag makes another command. */
function elsewhere(command: string, rest: Words): string[] | null {
  if (command === 'run list' && rest.some((word) => /^(--workflow|-w)(=|$)/.test(word)))
    return ['workflow', 'runs', 'list', ...rest.map((word) => word.replace(/^-w(?==|$)/, '--workflow'))]
  if (command !== 'task update') return null
  const words = rest.flatMap((word) => splitAssignee(word))
  const at = words.findIndex((word) => word === '--add-assignee' || word === '--remove-assignee')
  const [flag, agent] = [words[at], words[at + 1]]
  const others = words.filter((_, place) => place !== at && place !== at + 1)
  // What else is to be changed is another command.
  if (flag === undefined || agent === undefined || others.some((word) => word.startsWith('-') && !isOfForm(word)))
    return null
  const assigned = flag === '--add-assignee' ? ['--assignee', agent] : ['--unassign']
  return ['task', 'assign', ...others, ...assigned]
}

const isOfForm = (word: string): boolean => /^(-o|-q|--(output|json|jq|color|workspace))(=|$)/.test(word)

const splitAssignee = (word: string): string[] => {
  const [, flag, value] = /^(--(?:add|remove)-assignee)=(.*)$/s.exec(word) ?? []
  return flag === undefined ? [word] : [flag, value!]
}
