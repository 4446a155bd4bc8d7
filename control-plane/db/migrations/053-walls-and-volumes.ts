import type { Migration } from './migration.ts'

/** Adds the acts by which runs tried their walls, and volumes of sandboxes that outlive them. */
export const wallsAndVolumes: Migration = {
  version: 53,
  name: 'walls-and-volumes',
  async up(tx) {
    await tx.schema.alterTable('run_details', (t) => {
      t.text('wall')
    })
    await tx.schema.alterTable('sandboxes', (t) => {
      t.text('volume')
      t.integer('out_of_memory')
      t.integer('leaves_volume')
    })
    await tx.raw('create index sandboxes_left on sandboxes (engine_id) where leaves_volume = 1')
    await tx.raw('create index sandboxes_volume on sandboxes (volume) where volume is not null')
  },
}
