import { ApiFailure, type RefusedValue } from '../errors/cli-error.ts'
import { fieldAt, listAt, textAt } from '../replies/fields.ts'
import { acceptedForms } from './accepted-forms.ts'
import { flagsFor } from './parse.ts'
import { valueAt } from './named-things.ts'
import type { Command, ParsedArguments } from './command.ts'
import type { Values } from './values.ts'

/** A flag or positional, and the value of the call that it gives. */
interface Place {
  spelling: string
  target: string
  isGiven: boolean
  /** Its value is the text of a file, or JSON, which is not repeated. */
  isLong: boolean
  choices: readonly string[] | undefined
}

/** Codes that say that a value does not have its form. Of all others the place alone is told. */
const aboutForms: ReadonlySet<string | null> = new Set(['validation_error', 'invalid_id_format'])

export interface Line {
  command: Command
  values: Pick<Values, 'params' | 'query' | 'body'>
  positionals: ParsedArguments['positionals']
  /** The names of the flags that were given. */
  givenFlags: readonly string[]
}

/**
 * Says by flags and positionals what a refusal says by keys of the call. One about the form of a value is then one of the command line,
 * with its exit status. A failure that is about neither comes back as it is.
 */
export function spellRefusal(error: unknown, line: Line): unknown {
  if (!(error instanceof ApiFailure)) return error
  const envelope = fieldAt(error.body, 'error')
  const param = textAt(envelope, 'param')
  const fields = listAt(envelope, 'details', 'fields')
  if (param === null && fields.length === 0) return error
  const forms = acceptedForms(line.command.name)
  const places = placesOf(line)
  // Where the state of a thing decides what is allowed, the line can be read.
  const isOfList = error.status !== 409 && fieldAt(envelope, 'allowedValues') !== undefined
  const isAboutForm = aboutForms.has(error.code) || isOfList
  const message = textAt(envelope, 'message') ?? ''
  const said =
    fields.length > 0 ? fields : [{ path: param, message: error.code === 'invalid_id_format' ? '' : message }]
  const found = said.map((field) => {
    const [path, why] = [textAt(field, 'path') ?? '', textAt(field, 'message') ?? '']
    return { path, why, place: placeOf(places, path, error.code) }
  })
  if (found.every(({ place }) => place === null)) return error
  const values = found.map(({ path, why, place }): RefusedValue => {
    // What no flag gives is told as the server tells it.
    if (place === null) return { spelling: path, message: `${path}: ${why}` }
    const { spelling } = place
    if (!isAboutForm) return { spelling: withForm(place, forms[spelling], line.values), message: why }
    return { spelling, message: sentence(place, { path, why, form: forms[spelling], values: line.values }) }
  })
  return error.spelled({ values, isUsage: isAboutForm })
}

function placesOf({ command, positionals: words, givenFlags, values }: Line): Place[] {
  const positionals = command.positionals.map(({ name, target }) => ({
    spelling: `<${name}>`,
    target,
    isGiven: words[name] !== undefined,
    isLong: false,
    choices: undefined,
  }))
  const flags = flagsFor(command)
    .filter(({ dropped }) => dropped !== true)
    .map(({ name, target, kind, choices }) => ({
      spelling: `--${name}`,
      target,
      isGiven: givenFlags.includes(name),
      isLong: kind === 'file' || kind === 'json',
      choices,
    }))
  return [...positionals, ...flags]
    .filter((place): place is Place => place.target !== null)
    .map((place) => ({ ...place, isGiven: place.isGiven && valueAt(values, place.target) !== undefined }))
}

/** The place that gives the key, or the one around it. A flag that was given counts more than another for the same key. */
function placeOf(places: readonly Place[], path: string, code: string | null): Place | null {
  const keys = path.split('.')
  for (let length = keys.length; length > 0; length--) {
    const key = keys.slice(0, length).join('.')
    const named = places.filter(({ target }) => target.slice(target.indexOf('.') + 1) === key)
    // A key of the path and one of the body may have the same name; a schema judges the latter.
    const inPath = named.filter(({ target }) => target.startsWith('params.'))
    const beside = named.filter((place) => !inPath.includes(place))
    const found = code === 'validation_error' ? [...beside, ...inPath] : [...inPath, ...beside]
    const best = found.find(({ isGiven }) => isGiven) ?? found[0]
    if (best !== undefined) return best
  }
  return null
}

interface Misfit {
  path: string
  why: string
  form: string | undefined
  values: Line['values']
}

function sentence(place: Place, { path, why, form, values }: Misfit): string {
  const { spelling, choices } = place
  const takes = choices === undefined ? form : choices.join(', ')
  const within = place.isLong ? path.slice(place.target.length - place.target.indexOf('.')) : ''
  if (within !== '' && place.isGiven) return `${spelling} does not fit: ${within} ${why.replace(/[.:]$/, '')}.`
  const given = place.isLong ? null : givenAt(values, place.target, path)
  const head = !place.isGiven
    ? `${spelling} is missing`
    : given === null
      ? `${spelling} does not fit`
      : `${spelling} cannot be \`${given}\``
  const reason = why === '' || isOfItsForm(why) ? '' : `: ${why.replace(/[.:]$/, '')}`
  return `${head}${reason}.${takes === undefined ? '' : ` It takes ${takes}.`}`
}

/** What says no more than that the value lacks its form, or says the form again. */
const isOfItsForm = (why: string) =>
  /^(must be one of |must be a |must be an |must match |is missing|is not valid|does not have the form|has none of the forms)/.test(
    why,
  )

/** What stands for nothing may lack the form, too: then the form is what helps. */
function withForm({ spelling, target, isGiven }: Place, form: string | undefined, values: Line['values']): string {
  if (!isGiven || form === undefined || !target.startsWith('params.')) return spelling
  return `${spelling} \`${givenAt(values, target, '')}\`, which takes ${form}`
}

const shownLength = 60

/** The value as it was given; of a list the item that the path names. */
function givenAt(values: Line['values'], target: string, path: string): string | null {
  const value = valueAt(values, target)
  const index = /\.(\d+)(?:\.|$)/.exec(path)?.[1]
  const item: unknown = Array.isArray(value) ? (value as unknown[])[index === undefined ? 0 : Number(index)] : value
  if (typeof item !== 'string' && typeof item !== 'number' && typeof item !== 'boolean') return null
  const text = String(item)
  return text.length <= shownLength ? text : `${text.slice(0, shownLength)}…`
}
