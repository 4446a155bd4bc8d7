import fc from 'fast-check'
import { allFacts } from '../facts/all.ts'
import { inPool, thing } from '../facts/kit/recipe.ts'
import type { CodeRecipe, Keeper, Placed, Recipe, ResourceFacts } from '../facts/kit/resource-facts.ts'

// The facts of all resources together, as the walks read them.

const facts = Object.entries(allFacts)
type RecordOf<T> = Readonly<Record<string, T>>

/** By the id of the route. */
export const goodRequests = merged<Recipe>('requests')
export const codeRecipes: readonly CodeRecipe[] = facts.flatMap(([, { codes = [] }]) => codes)
export const postgresCodeRecipes: readonly CodeRecipe[] = facts.flatMap(([, { postgresCodes = [] }]) => postgresCodes)
export const plainErrorRecipes = merged<NonNullable<ResourceFacts['plainErrors']>[string]>('plainErrors')
export const unprovoked = merged<string>('unprovoked')
export const notOnRoute = merged<string>('notOnRoute')
export const withoutCommand = merged<string>('withoutCommand')
export const nothingToRead = merged<string>('nothingToRead')
export const unknownIds = merged<string>('unknownIds')
export const bearerIds: readonly string[] = facts.flatMap(([, { bearerIds: names = [] }]) => names)
export const places: readonly Placed[] = facts.flatMap(([, { places: some = [] }]) => some)
export const placesWithin: readonly Placed[] = facts.flatMap(([, { within = [] }]) => within)
export const sharpRoutes: readonly string[] = facts.flatMap(([, { sharp = [] }]) => sharp)
/** Says what a route ends, by its id. */
export const endingRoutes = merged<'workspace' | 'caller'>('ends')
const seldomNamed = facts.flatMap(([, { seldomNamed: names = [] }]) => names)

/** Names of all things. */
export const idNames = Object.keys(unknownIds)
/** Those that a random walk names anywhere. */
export const namesElsewhere = idNames.filter((name) => !seldomNamed.includes(name))

/** Keys that are called as parameters are name the same things. */
const idKeys = namesElsewhere.filter((name) => /^\w+Id$/.test(name)).map((name) => ({ [name]: thing(name) }))
/** By the key of a body or a query. */
export const namedValues = anyOf([...idKeys, ...facts.map(([, { named = {} }]) => named)])
export const hostileValues = anyOf([...idKeys, ...facts.map(([, { hostile = {} }]) => hostile)])
/** Texts that are likely to name something. */
export const known = fc.oneof(
  fc.constantFrom(...namesElsewhere.map(inPool)),
  fc.constantFrom('me', 'current', '@nobody', 'main', ...Object.values(unknownIds)),
)

/**
 * One of each thing, by its name. One after another, and in the order of the contract, so that they are the same each time. A
 * thing that there is not, as events of a run that waits, has the id that names nothing.
 */
export async function makeThings(
  keeper: Keeper,
  { without = [] }: { without?: readonly (keyof typeof allFacts)[] } = {},
): Promise<Record<string, string>> {
  const made: Record<string, string> = { ...unknownIds }
  for (const [group, { things }] of facts) {
    if (things === undefined || without.some((each) => each === group)) continue
    Object.assign(made, await things(keeper))
  }
  return made
}

type Keyed =
  | 'requests'
  | 'plainErrors'
  | 'unprovoked'
  | 'notOnRoute'
  | 'withoutCommand'
  | 'nothingToRead'
  | 'unknownIds'
function merged<T>(what: Keyed | 'ends'): RecordOf<T> {
  const all: Record<string, T> = {}
  for (const [group, each] of facts) {
    for (const [key, value] of Object.entries(each[what] ?? {})) {
      if (key in all) throw new Error(`test/api/facts: ${group} says again what is said of ${key} in ${what}`)
      all[key] = value as T
    }
  }
  return all
}

/** A key of several resources has the values of each. */
function anyOf(all: readonly RecordOf<fc.Arbitrary<unknown>>[]): RecordOf<fc.Arbitrary<unknown>> {
  const keys = new Set(all.flatMap((each) => Object.keys(each)))
  return Object.fromEntries([...keys].map((key) => [key, fc.oneof(...all.flatMap((each) => each[key] ?? []))] as const))
}
