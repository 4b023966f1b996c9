// The pipeline of edges.json with another filter of Pillow's and a name of its own.
function(suffix, filter, code='/code') {
  pipeline: { name: 'edges-' + suffix },
  description: 'Draws the outlines of each picture with ' + filter + '.',
  input: { pfs: { repo: 'images', glob: '/*' } },
  transform: {
    image: 'example/pillow:1.0',
    cmd: ['python3', code + '/edges.py'],
    env: { FILTER: filter },
  },
}
