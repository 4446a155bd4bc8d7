import type fc from 'fast-check'
import type { AnyRoute } from '../../../../shared/api/route.ts'
import type { Person, Reply, TestServer } from '../../../kit/server.ts'
import type { Stage } from '../../contract/stage.ts'

/**
 * The facts that the walks over all routes must know of one file of `shared/api`. Whatever is left out does not apply to it; a request
 * for each route is asked of everybody. `all.ts` lists the facts, `contract/collected.ts` gathers them for the walks.
 */
export interface ResourceFacts {
  /** By the id of the route: one that must succeed. A route that answers 501 whatever is sent needs none. */
  requests: Readonly<Record<string, Recipe>>
  /** A real request for each code on the routes for which the documents name it. */
  codes?: readonly CodeRecipe[]
  /** The same, for codes that need two transactions at once, which SQLite never has. */
  postgresCodes?: readonly CodeRecipe[]
  /** A request for each error of the older form, by its id. */
  plainErrors?: Readonly<Record<string, (asking: Asking) => Promise<Reply>>>
  /** Codes that no request can provoke, with the reason. */
  unprovoked?: Readonly<Record<string, string>>
  /** `code route.id`: the documents name the code for a whole resource, and on this route it cannot come about. The reason. */
  notOnRoute?: Readonly<Record<string, string>>
  /** Routes without a command of `svc`, with the reason. */
  withoutCommand?: Readonly<Record<string, string>>

  /**
   * Well-formed ids that name nothing, by the parameter or key that carries them. `{id}` of a resource whose ids have a form
   * of their own stands under the first word of its path: `tasks.id`.
   */
  unknownIds?: Readonly<Record<string, string>>
  /** Makes one of each thing that the ids name. */
  things?: (keeper: Keeper) => Promise<Readonly<Record<string, string>>>
  /** Ids that work for whoever knows them: a stranger's is not as if it were not there. */
  bearerIds?: readonly string[]

  /** Reads of which a new thing has nothing to show, with the reason. */
  nothingToRead?: Readonly<Record<string, string>>
  /** Requests that name something in a body or a query: a stranger's is answered as one that is not there. */
  places?: readonly Placed[]
  /** Requests for a stranger's thing below a thing of ours. */
  within?: readonly Placed[]

  /** Values of keys in bodies and queries that schemas alone would seldom meet. */
  named?: Readonly<Record<string, fc.Arbitrary<unknown>>>
  /** Values that somebody would put there who wants a foreign machine. */
  hostile?: Readonly<Record<string, fc.Arbitrary<unknown>>>
  /** Routes that say what runs, where and with what: the walk of bad intent asks them most. */
  sharp?: readonly string[]
  /** Routes that leave a random walk without a workspace that works, or without the one who walks. */
  ends?: Readonly<Record<string, 'workspace' | 'caller'>>
  /** Ids that a random walk names only where a route is about them: some routes would end what all else is within. */
  seldomNamed?: readonly string[]
}

/** The ids, body and caller that a request needs, made anew for each. */
export interface GoodRequest {
  /** Values of the path's parameters. */
  params?: Readonly<Record<string, string>>
  /** Of a route that cannot do without. */
  query?: Readonly<Record<string, string>>
  body?: unknown
  /** Default: the owner's. */
  token?: string
  headers?: Readonly<Record<string, string>>
  /** The caller is gone afterwards: a second request is another caller's. */
  endsCaller?: true
}
export type Recipe = (stage: Stage) => Promise<GoodRequest> | GoodRequest

export interface CodeRecipe {
  route: string
  /** `404 resource_not_found` */
  outcome: string
  provoke: (stage: Stage) => Promise<Reply>
}

export interface Asking {
  stage: Stage
  route: AnyRoute
  /** The good request of the route with a change. */
  send: (change: { token?: string; body?: unknown; params?: Record<string, string> }) => Promise<Reply>
}

/** Somebody who has one of each thing. */
export interface Keeper {
  server: TestServer
  person: Person
  /** An agent of theirs, whom the things are about. */
  agentId: string
  /** Somebody of the same workspace whom requests name. */
  colleague: Person
  /** A run that works, if there is one. */
  liveRunId: string | null
}

export type Ids = Readonly<Record<string, string>>
export interface Place {
  path: string
  method?: string
  base?: '/api' | '/api/v1'
  body?: unknown
}
export type Placed = readonly [route: string, method: string, at: (stage: Stage, ids: Ids) => Promise<Place> | Place]
