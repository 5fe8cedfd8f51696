"""Where arrays live: devices, plugins, meshes, specs, shardings, layouts and memory kinds."""
