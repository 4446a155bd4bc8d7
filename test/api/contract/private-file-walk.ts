import { withoutUndefined } from '../../../shared/lib/without-undefined.ts'
import type { AnyRoute } from '../../../shared/api/route.ts'
import { isLong } from '../../kit/forms.ts'
import type { CallOptions, Reply } from '../../kit/server.ts'
import type { GoodRequest, Ids, Recipe } from '../facts/kit/resource-facts.ts'
import { places, placesWithin } from './collected.ts'
import { asked, fill, isUnavailable } from './every-route.ts'
import { readsOf, writesOf, type Asked } from './private-file-plan.ts'
import {
  callers,
  castOf,
  makeScene,
  otherThings,
  readers,
  type CallerName,
  type Cast,
  type Mark,
  type Scene,
} from './private-file-scene.ts'
import type { Stage } from './stage.ts'

// Asks routes about a private file as everybody, and notes what is seen of it.

/** Those who may read the file and are no agent: between them they see all that is to be seen of it. */
const people: readonly CallerName[] = ['owner', 'admin']
const readersFirst = [...people, ...callers.filter((caller) => !people.includes(caller))]
const readersLast = [...callers.filter((caller) => !readers.includes(caller)), ...people, 'uploader' as const]

export type Ask = (path: string, options: CallOptions) => Promise<Reply>

export class PrivateFileWalk {
  /** Sentences: who saw what of the file and should not have. */
  readonly leaks: string[] = []
  private readonly seen = new Map<string, Map<CallerName, Set<Mark>>>()
  private readonly good = new Set<string>()
  private readonly stage: Stage
  private readonly cast: Cast
  private readonly things: Ids
  private readonly ask: Ask
  private scene: Scene
  private whole: Looked

  static async start(stage: Stage): Promise<PrivateFileWalk> {
    const cast = await castOf(stage)
    const walk = new PrivateFileWalk(stage, cast, { things: await otherThings(stage, cast) })
    await walk.setScene()
    return walk
  }

  private constructor(stage: Stage, cast: Cast, { things, ask }: { things: Ids; ask?: Ask }) {
    this.stage = stage
    this.cast = cast
    this.things = things
    this.ask = ask ?? ((path, options) => stage.server.call(path, options))
    this.scene = { views: [], marks: {} as Scene['marks'] }
    this.whole = { file: undefined, revisions: [], relations: [], messages: [] }
  }

  /** The same walk, where some requests are answered by this. */
  answeredBy(ask: (before: Ask) => Ask): PrivateFileWalk {
    const walk = new PrivateFileWalk(this.stage, this.cast, { things: this.things, ask: ask(this.ask) })
    walk.scene = this.scene
    walk.whole = this.whole
    return walk
  }

  /** What those who may read the file saw of it, by route and caller. */
  shown(): Record<string, Record<string, readonly Mark[]>> {
    return Object.fromEntries(
      [...this.seen].map(([id, by]) => [
        id,
        Object.fromEntries([...by].map(([caller, marks]) => [caller, [...marks].toSorted()])),
      ]),
    )
  }

  /** Those of the routes from which nobody had a good answer. */
  withoutSuccess(routes: readonly AnyRoute[]): string[] {
    return routes.map(({ id }) => id).filter((id) => !this.good.has(id))
  }

  /** Fails with a sentence when it does not know how to ask the route. */
  async route(route: AnyRoute, recipe: Recipe | undefined): Promise<void> {
    if (recipe === undefined && !isUnavailable(route))
      throw new Error(`${route.id}: there is no request that succeeds in test/api/facts.`)
    const make = async (): Promise<GoodRequest> => (await recipe?.(this.stage)) ?? {}
    await (route.method === 'GET' ? this.read(route, await make()) : this.write(route, make))
  }

  private async read(route: AnyRoute, good: GoodRequest): Promise<void> {
    const plain = asked(fill(route.path, { ...this.things, ...good.params }), good.query)
    for (const request of readsOf(route, this.scene.views, { things: this.things, good })) {
      const { path } = request
      // Whoever may read the file sees all that others would of it: what shows them nothing of it need not be asked by all. An
      // admin is in none of its owner's conversations, and the owner sees what the uploader does.
      const mayStop = !isLong && (path === plain || path.includes('?'))
      let [isAnswered, isSeen] = [path !== plain, false]
      for (const caller of readersFirst) {
        if (mayStop && isAnswered && !isSeen && !people.includes(caller)) break
        const { isGood, seen } = await this.send(route, request, { caller, headers: good.headers })
        isSeen ||= seen.length > 0
        isAnswered ||= isGood
      }
    }
  }

  private async write(route: AnyRoute, make: () => Promise<GoodRequest>): Promise<void> {
    let good = await make()
    const plain = async (): Promise<void> => void (good = await make())
    const pathOf = () => asked(fill(route.path, { ...this.things, ...good.params }), good.query)
    const request = async () => ({ path: pathOf(), body: good.body })
    const order = isLong ? callers : readersFirst
    const { isSpent } = await this.all(route, request, { headers: good.headers, renew: plain, order })
    const written = () => writesOf(route, this.scene.views, { things: this.things, good })
    const isUnproven = isLong || !this.good.has(route.id)
    if (isSpent && (isUnproven || written().length > 0)) await plain()
    // Whom the good request is made for is asked last, as it may be gone then: what an answer shows is not looked at.
    if (isUnproven)
      await this.send(
        route,
        { path: pathOf(), body: good.body },
        {
          caller: null,
          headers: good.headers,
          ...withoutUndefined({ token: good.token }),
        },
      )

    const renew = () => this.mendScene()
    const ofFile = async (make: () => Promise<Asked>): Promise<void> => {
      if ((await this.all(route, make, { headers: good.headers, renew })).isSpent) await renew()
    }
    for (let nth = 0; nth < written().length; nth++) await ofFile(async () => written()[nth]!)
    for (const [id, method, at] of [...places, ...placesWithin]) {
      if (id !== route.id || method !== route.method) continue
      const request = async () => at(this.stage, { ...this.things, ...this.scene.views[0] })
      if (namesAny(await request(), this.scene.views[0]!)) await ofFile(request)
    }
  }

  /**
   * Asks as everybody in this order. After each success but the last, what the request needs is made anew; `isSpent`: the last one
   * succeeded, so whoever goes on makes it anew. In the short form a good answer in which somebody who may read the file sees nothing of it is the last one: those who
   * follow would see no more. Who may not read it follows only where the request names nothing of the file.
   */
  private async all(
    route: AnyRoute,
    make: () => Promise<Asked>,
    {
      headers,
      renew,
      order = readersLast,
    }: { headers: GoodRequest['headers'] | undefined; renew: () => Promise<void>; order?: readonly CallerName[] },
  ): Promise<{ isSpent: boolean }> {
    let request = await make()
    let [isAnswered, isSeen, isSpent] = [false, false, false]
    for (const caller of order) {
      if (!isLong && isAnswered && !isSeen) break
      if (isSpent) {
        await renew()
        request = await make()
      }
      const { isGood, seen } = await this.send(route, request, { caller, headers })
      isSeen ||= seen.length > 0
      isAnswered ||= isGood && readers.includes(caller)
      isSpent = isGood
    }
    return { isSpent }
  }

  /** Answers whether the request succeeded, and what was seen of the file. */
  private async send(
    route: AnyRoute,
    { path, body }: Asked,
    // Without one: whom the good request is made for.
    {
      caller,
      headers,
      token,
    }: { caller: CallerName | null; headers: GoodRequest['headers'] | undefined; token?: string },
  ): Promise<{ isGood: boolean; seen: readonly Mark[] }> {
    const options = (): CallOptions => ({
      method: route.method,
      base: route.base,
      token: caller === null ? (token ?? this.stage.owner.token) : this.cast[caller].token,
      headers: { accept: 'application/json', ...headers, 'idempotency-key': crypto.randomUUID() },
      ...(body === undefined ? {} : { body }),
    })
    let reply = await this.ask(path, options())
    if (reply.status === 401 && caller !== null) {
      // Some requests end the run that asks.
      await this.renew()
      reply = await this.ask(path, options())
    }
    const sent = `${path} ${JSON.stringify(body ?? null)}`
    const answer = `${JSON.stringify([...reply.headers])} ${JSON.stringify(reply.body)}`
    const seen = (Object.entries(this.scene.marks) as [Mark, string][]).filter(
      ([, mark]) => answer.includes(mark) && !sent.includes(mark),
    )
    for (const [mark] of seen) {
      if (caller === null) continue
      if (readers.includes(caller)) this.noteShown(route.id, caller, mark)
      else this.leaks.push(`${route.method} ${path} shows the ${mark} of the file to the ${caller}.`)
    }
    if (reply.status >= 500 && !isUnavailable(route)) throw new Error(`${route.id} ${path}: ${answer}`)
    if (reply.status < 400) this.good.add(route.id)
    return { isGood: reply.status < 400, seen: seen.map(([mark]) => mark) }
  }

  private noteShown(id: string, caller: CallerName, mark: Mark): void {
    const ofRoute = this.seen.get(id) ?? new Map<CallerName, Set<Mark>>()
    this.seen.set(id, ofRoute.set(caller, (ofRoute.get(caller) ?? new Set<Mark>()).add(mark)))
  }

  private async renew(): Promise<void> {
    const { server } = this.stage
    for (const [agent, owner] of [
      [this.cast.uploader, this.cast.owner],
      [this.cast.agent, this.cast.member],
    ] as const) {
      if ((await server.call('/runs/current', { token: agent.token })).status < 400) continue
      agent.runId = await server.startRun(agent.agent.id, {}, owner.token)
      agent.token = await server.runToken(agent.runId)
    }
  }

  private async setScene(): Promise<void> {
    this.scene = await makeScene(this.stage, this.cast)
    this.whole = await this.look()
  }

  /** Sets the scene anew when the file, or what hangs on it, is not as it was, and cannot be made so. */
  private async mendScene(): Promise<void> {
    if (this.isWhole(await this.look())) return
    await this.putBack()
    if (!this.isWhole(await this.look())) await this.setScene()
  }

  private readonly isWhole = (now: Looked) => JSON.stringify(now) === JSON.stringify(this.whole)

  private async look(): Promise<Looked> {
    const { root } = this.stage.server.database
    const id = this.scene.views[0]!['files.id']
    const messageIds = this.scene.views.map((view) => view['messages.id']!)
    return {
      file: await root('files').where({ id }).first(),
      revisions: await root('file_revisions').where({ file_id: id }).orderBy('id'),
      relations: await root('file_relations').where({ file_id: id }).orderBy('id'),
      messages: await root('messages')
        .whereIn('id', messageIds)
        .orderBy('id')
        .select('id', 'deleted_at', 'attachment_ids'),
    }
  }

  /**
   * Writes the rows of a file that was changed as they were: a new scene takes thirty requests. What was deleted stays so, as
   * more than these rows may be gone with it.
   */
  private async putBack(): Promise<void> {
    const { root } = this.stage.server.database
    const { file, relations, revisions } = this.whole
    const now = await this.look()
    if (now.file === undefined || now.file.deleted_at !== null || now.revisions.length < revisions.length) return
    if (now.relations.length < relations.length - 1) return
    await root('file_revisions').where({ file_id: file!.id }).whereNotIn('id', idsOf(revisions)).delete()
    await root('file_relations').where({ file_id: file!.id }).delete()
    await root('file_relations').insert(relations)
    await root('files').where({ id: file!.id }).update(file!)
  }
}

interface Row {
  id: string
  deleted_at: number | null
}
interface Looked {
  file: Row | undefined
  revisions: Row[]
  relations: Row[]
  messages: Row[]
}
const idsOf = (rows: readonly Row[]) => rows.map(({ id }) => id)

const namesAny = (request: Asked, ids: Ids): boolean => {
  const sent = JSON.stringify(request)
  return Object.values(ids).some((id) => sent.includes(id))
}
