import type { SweepContext } from './sweeper.ts'

/**
 * Works on each item, one after another. One that fails is logged and comes again with the next round: it must hold up none
 * of the others.
 */
export async function oneByOne<Item extends { id: string }>(
  { log }: Pick<SweepContext, 'log'>,
  items: readonly Item[],
  work: (item: Item) => Promise<void>,
): Promise<void> {
  for (const item of items) {
    try {
      await work(item)
    } catch (error) {
      log.error({ err: error, id: item.id }, 'a sweep failed at one of many; it comes again')
    }
  }
}
