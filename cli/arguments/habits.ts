// Words that people bring along from gh, git and other programs, in the words of svc. Loaded for a line that names no command.

/** Verbs behind the thing that they are about. */
const verbs: Readonly<Record<string, string>> = {
  view: 'get',
  show: 'get',
  edit: 'update',
  ls: 'list',
  rm: 'delete',
  remove: 'delete',
  new: 'create',
  add: 'create',
  rerun: 'retry',
}

const whole: readonly (readonly [given: string, ours: string, more?: readonly string[]])[] = [
  ['auth login', 'login'],
  ['auth logout', 'logout'],
  ['auth status', 'whoami'],
  ['task status', 'status'],
  ['task comment', 'task comment add'],
  ['workflow run', 'workflow start'],
  ['comment create', 'comment add'],
]

/** Things that are called otherwise elsewhere. */
const things: Readonly<Record<string, string>> = { issue: 'task', runs: 'run', agents: 'agent', tasks: 'task' }

/** The lines that the given one may mean, the likeliest first. None of them need name a command. */
export function inOurWords(words: readonly string[]): string[][] {
  const [first, ...rest] = words
  if (first === undefined) return []
  const thing = Object.hasOwn(things, first) ? things[first]! : first
  const named = [thing, ...rest]
  return [named, ...shaped(named), ...phrased(named), ...withVerb(named)]
}

/** Lines whose words stand otherwise in svc. */
function shaped([thing, verb, ...rest]: readonly string[]): string[][] {
  const [name = '-', ...more] = rest
  const isNamed = !name.startsWith('-')
  switch (`${thing} ${verb}`) {
    case 'secret set':
      return [['secret', 'create', ...(isNamed ? ['--name', name, ...more] : rest)]]
    case 'task close':
      return [['task', 'transition', ...rest.filter((_, at) => !isWhy(rest, at)), '--status', closedAs(rest)]]
    case 'task reopen':
      // What is said there is the reason that svc wants.
      return [['task', 'transition', ...rest.map(asReason), '--status', 'open']]
    case 'run view':
      return rest.some(isLog) ? [['run', 'watch', ...rest.filter((word) => !isLog(word))]] : []
    default:
      return []
  }
}

const asReason = (word: string): string =>
  word === '-c' || word === '--comment' ? '--reason' : word.replace(/^--comment=/, '--reason=')

/** Of `--reason WHY`, as gh closes an issue. Where it gives up, the task is cancelled. */
const isWhy = (rest: readonly string[], at: number): boolean => {
  const isFlag = (word: string | undefined) => word === '--reason' || word === '-r'
  return isFlag(rest[at]) || isFlag(rest[at - 1]) || /^(--reason|-r)=/.test(rest[at]!)
}

function closedAs(rest: readonly string[]): 'done' | 'cancelled' {
  const why = rest.filter((_, at) => isWhy(rest, at)).join(' ')
  return /not[ _]planned|duplicate/i.test(why) ? 'cancelled' : 'done'
}

const isLog = (word: string): boolean => word === '--log' || word === '--log-failed'

function phrased(words: readonly string[]): string[][] {
  const [thing, verb, ...rest] = words
  return whole
    .filter(([given]) => given === `${thing} ${verb}`)
    .map(([, ours, more = []]) => [...ours.split(' '), ...rest, ...more])
}

function withVerb([thing, verb, ...rest]: readonly string[]): string[][] {
  return thing === undefined || verb === undefined || !Object.hasOwn(verbs, verb)
    ? []
    : [[thing, verbs[verb]!, ...rest]]
}
